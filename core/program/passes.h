#pragma once

#include <string>
#include <vector>

#include "core/program/builder.h"

namespace gestalt::core {

// The passes of a program, each in its own file, in the order in which they run. (Kernel binding and the memory plan need
// a device and are in bind.h and memory_plan.h.)

// Appends the backward of the program's losses and sends the gradient of each parameter to the input "grad:PATH" (f32, or
// f64 for f64), times the loss scale among the step's scalars where `scaled`. Returns the parameters that no loss depends on: nothing writes their gradient.
std::vector<std::string> add_gradients(Builder& builder, const std::vector<const Parameter*>& parameters,
                                       bool scaled = false);

// Removes nodes whose results nobody reads and that write nothing outside.
void remove_dead_nodes(Program& program);

// What the backward computes again instead of keeping: everything below module paths that match, and ops of a group
// ("norm", "activation", "attention", "dropout", "position").
struct RecomputePolicy {
  std::vector<std::string> paths;
  std::vector<std::string> groups;
};
// Returns the number of nodes that are recomputed. The same kernels see the same inputs, so bits do not change.
size_t recompute(Program& program, const RecomputePolicy& policy);

// Spreads the backward over `num_streams` queues: with two, weight gradients run beside input gradients.
void assign_streams(Program& program, int num_streams);

// Replaces `node` by the decomposition of its op; what reads its outputs reads the same values afterwards.
std::vector<Node*> decomposed(Program& program, const Node& node);
// The same for a node that `depth` decompositions led to; an error where they do not seem to end.
constexpr int kMostDecompositions = 32;
std::vector<Node*> decomposed_below(Program& program, const Node& node, int depth);

}  // namespace gestalt::core
