#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.data_indexed", "0.1.0")
