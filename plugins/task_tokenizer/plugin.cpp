#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.task_tokenizer", "0.1.0")
