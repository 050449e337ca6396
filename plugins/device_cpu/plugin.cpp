#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.device_cpu", "0.1.0")
