#include "gestalt/plugin.hpp"

GESTALT_PLUGIN("gestalt.tracker_tensorboard", "0.1.0")
