#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.task_parity", "0.1.0")
