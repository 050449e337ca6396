#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.norm", "0.1.0")
