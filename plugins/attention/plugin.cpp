#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.attention", "0.1.0")
