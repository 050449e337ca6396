#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.format_llama2c", "0.1.0")
