#pragma once

#include "core/program/program.h"

namespace gestalt::core {

// Arithmetic of one node: two operations for each multiply and add of matrix products and attention, 0 for everything
// else. Causal attention counts the half that is not masked. `segment` as of segment_length.
double node_flops(const Node& node, const DimTable& dims, double segment);

// The length of a sequence in the batches of a program, on average; with the sizes of the last set().
double segment_length(const Program& program);

// Model operations of one training pass, as model-FLOP utilisation counts them: three times those of the forward, which
// leaves recomputation out. With the sizes of the last set().
double training_flops(const Program& program);

// Bytes that a node reads and writes, each tensor once.
double node_bytes(const Node& node, const DimTable& dims);

}  // namespace gestalt::core
