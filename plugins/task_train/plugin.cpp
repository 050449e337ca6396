#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.task_train", "0.1.0")
