#pragma once

#include "core/parallel/groups.h"
#include "core/program/program.h"

namespace gestalt::core {

// What the host gives for a collective among more than one rank: a kernel that hands the call to the communicator, with
// its state. `kernel` is NULL for a node that is no such collective, or one that its op decomposes into others first.
struct CollectiveKernel {
  const gestalt_kernel* kernel = nullptr;
  void* state = nullptr;
};
CollectiveKernel collective_kernel(const Node& node, const Groups* groups);

}  // namespace gestalt::core
