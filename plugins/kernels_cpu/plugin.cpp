#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.kernels_cpu", "0.1.0")
