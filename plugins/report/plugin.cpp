#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.report", "0.1.0")
