#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "gestalt/abi/plugin.h"

namespace gestalt::core {

struct Node;

// dtype and shape; a negative dimension is a handle of the DimTable.
struct TensorType {
  uint32_t dtype = 0;
  int ndim = 0;
  std::array<int64_t, GESTALT_MAX_NDIM> shape{};

  TensorType() = default;
  TensorType(uint32_t dtype_in, std::initializer_list<int64_t> dims) : dtype(dtype_in) {
    for (int64_t d : dims) shape[static_cast<size_t>(ndim++)] = d;
  }
  int64_t dim(int i) const { return shape[static_cast<size_t>(i < 0 ? i + ndim : i)]; }
  bool same_shape(const TensorType& o) const {
    if (ndim != o.ndim) return false;
    for (int i = 0; i < ndim; ++i)
      if (shape[static_cast<size_t>(i)] != o.shape[static_cast<size_t>(i)]) return false;
    return true;
  }
  bool operator==(const TensorType& o) const { return dtype == o.dtype && same_shape(o); }
};

}  // namespace gestalt::core

// A symbolic tensor of a recorded program: the object behind the ABI's opaque handle. Addresses are stable; the program
// owns it.
struct gestalt_tensor {
  uint32_t id = 0;
  gestalt::core::TensorType type;
  std::array<int64_t, GESTALT_MAX_NDIM> strides{};  // in elements, numbers or handles
  int64_t offset = 0;                               // in elements from the base's start
  gestalt_tensor* base = nullptr;                   // the tensor whose storage a view shares; NULL: owns storage
  gestalt::core::Node* producer = nullptr;          // NULL: an input of the program
  size_t output = 0;                                // index among the producer's outputs
  std::string name;                                 // inputs: where the storage comes from ("param:model.head.weight")
  gestalt_tensor* sink = nullptr;  // a gradient contribution: written or accumulated into this gradient tensor

  gestalt_tensor* root() { return base ? base : this; }
};

namespace gestalt::core {
using Value = gestalt_tensor;
}  // namespace gestalt::core
