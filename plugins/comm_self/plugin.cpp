#include "gestalt/plugin.hpp"

#include "plugins/comm_self/comm_self.h"

GESTALT_REGISTER(gestalt_component, "gestalt_components", gestalt::comm_self::kSelfComponent)
GESTALT_PLUGIN("gestalt.comm_self", "0.1.0")
