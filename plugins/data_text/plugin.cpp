#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.data_text", "0.1.0")
