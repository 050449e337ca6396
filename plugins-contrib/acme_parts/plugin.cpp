#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("acme.parts", "1.0.0")
