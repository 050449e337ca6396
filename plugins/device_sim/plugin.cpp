#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.device_sim", "0.1.0")
