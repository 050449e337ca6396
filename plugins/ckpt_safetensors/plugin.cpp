#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.ckpt_safetensors", "0.1.0")
