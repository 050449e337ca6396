#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.comm_self", "0.1.0")
