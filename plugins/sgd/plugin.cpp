#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.sgd", "0.1.0")
