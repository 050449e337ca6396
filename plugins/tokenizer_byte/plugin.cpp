#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.tokenizer_byte", "0.1.0")
