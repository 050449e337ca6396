#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.decoder", "0.1.0")
