#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.mlp", "0.1.0")
