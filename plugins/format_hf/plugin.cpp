#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.format_hf", "0.1.0")
