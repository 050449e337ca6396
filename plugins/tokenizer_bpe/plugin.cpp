#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.tokenizer_bpe", "0.1.0")
