#pragma once

#include "plugins/kernels_cuda/launch.h"

// What kernels on elements and rows share in prepare. Numbers in device memory (ids, labels, segments) cannot be
// checked before the work is enqueued: kernels stay inside their tensors whatever those say, and answer NaN where a
// number makes no sense.
namespace gestalt::kernels_cuda {

// Base of a kernel class that takes any strides.
struct ElementKernel : CudaKernel {
  static constexpr uint64_t flags = CudaKernel::strided;
  static constexpr uint64_t accumulating = flags | GESTALT_KERNEL_ACCUMULATES;
};

inline void need_any(const Plan& plan, View view, std::string_view name) {
  need_dtype(plan, view, name, {kF32, kF64, kBF16, kF16, kI32, kI64, kU8, kBool});
}

// The shape of view is that of the last dimensions of `whole`.
inline void need_suffix(const Plan& plan, View view, std::string_view name, View whole) {
  if (view.ndim() > whole.ndim())
    throw InvalidArgument(place(plan) + std::string(name) + ": too many dimensions, got " + describe(view) +
                          " beside " + describe(whole));
  for (int d = 1; d <= view.ndim(); ++d) need_dim(plan, view, name, view.ndim() - d, whole.dim(-d));
}

// The compute type of a floating dtype is float, but double for f64.
template <class F>
F for_compute_type(DType dtype, F with_float, F with_double) {
  return dtype == kF64 ? with_double : with_float;
}

}  // namespace gestalt::kernels_cuda
