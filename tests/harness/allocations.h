#pragma once

#include <cstdint>

namespace gestalt::harness {

// Calls of operator new by any thread of this process, plugins with a shared C++ runtime included.
uint64_t allocations();

}  // namespace gestalt::harness
