#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.task_eval", "0.1.0")
