#include "gestalt/plugin.hpp"

#include "plugins/device_sim/sim_component.h"

GESTALT_REGISTER(gestalt_component, "gestalt_components", gestalt::device_sim::kSimComponent)
GESTALT_PLUGIN("gestalt.device_sim", "0.1.0")
