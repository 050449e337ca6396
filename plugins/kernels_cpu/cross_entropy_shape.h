#pragma once

#include <string>

#include "gestalt/op_plans/cross_entropy.hpp"
#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"

// What the kernels of cross entropy share.
namespace gestalt::kernels_cpu {

inline void check_labels(std::string_view op, View labels, View weights, int64_t classes) {
  const In<int64_t> label(labels);
  const In<double> weight(weights);
  for (int64_t t = 0; t < labels.dim(0); ++t) {
    const int64_t id = label.one(t * labels.stride(0));
    if ((id < 0 || id >= classes) && weight.one(t * weights.stride(0)) != 0)
      throw InvalidArgument("[" + std::string(op) + "] labels: out of range, got " + std::to_string(id) +
                            " at position " + std::to_string(t) + ", expected 0 to " + std::to_string(classes - 1) +
                            "; a token that is not trained has weight 0");
  }
}

}  // namespace gestalt::kernels_cpu
