#pragma once

#include "gestalt/abi/plugin.h"

namespace gestalt::core {

// Checks the descriptor that a plugin handed over as far as that is possible without calling it: struct sizes, counts,
// NULL pointers, names, flags that this host must understand, duplicates. Throws Error (CONFIG_ERROR) with the reason.
void check_descriptor(const gestalt_plugin* plugin);

}  // namespace gestalt::core
