#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.comm_threads", "0.1.0")
