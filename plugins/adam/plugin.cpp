#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.adam", "0.1.0")
