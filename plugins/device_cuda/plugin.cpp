#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.device_cuda", "0.1.0")
