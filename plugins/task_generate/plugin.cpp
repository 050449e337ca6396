#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.task_generate", "0.1.0")
