#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.task_data", "0.1.0")
