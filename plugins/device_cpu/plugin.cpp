#include "gestalt/plugin.hpp"

#include "plugins/device_cpu/cpu_device.h"

GESTALT_REGISTER(gestalt_component, "gestalt_components", gestalt::device_cpu::kCpuComponent)
GESTALT_PLUGIN("gestalt.device_cpu", "0.1.0")
