#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.kernels_cuda", "0.1.0")
