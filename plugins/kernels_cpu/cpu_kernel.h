#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "gestalt/kernel.hpp"

// What all kernels of this plugin share: who they are, what they check, and how rows are shared out among threads.
namespace gestalt::kernels_cpu {

// Base of a kernel class; a kernel that honours the accumulate bit overrides flags.
struct CpuKernel {
  static constexpr std::string_view device = "cpu", backend = "gestalt.cpu";
  static constexpr uint64_t flags =
      GESTALT_KERNEL_CAPTURABLE | GESTALT_KERNEL_DETERMINISTIC | GESTALT_KERNEL_STRIDED | GESTALT_KERNEL_ANY_SHAPE;
  static constexpr uint64_t accumulating = flags | GESTALT_KERNEL_ACCUMULATES;
};

inline std::string place(const Plan& plan) { return "[" + std::string(plan.op()) + "] "; }

inline void need_dtype(const Plan& plan, View view, std::string_view name, std::initializer_list<DType> allowed) {
  for (DType dtype : allowed)
    if (view.dtype() == dtype) return;
  std::string list;
  for (DType dtype : allowed) list += (list.empty() ? "" : ", ") + std::string(name_of(dtype));
  throw Unsupported(place(plan) + std::string(name) + ": dtype not supported, got " + describe(view) + ", expected " +
                    list);
}

inline void need_float(const Plan& plan, View view, std::string_view name) {
  need_dtype(plan, view, name, {kF32, kF64, kBF16, kF16});
}

inline void need_index(const Plan& plan, View view, std::string_view name) {
  need_dtype(plan, view, name, {kI32, kI64});
}

// A tensor whose elements share the compute type of a reference tensor: an f64 op is f64 throughout.
inline void need_like(const Plan& plan, View view, std::string_view name, View reference) {
  need_float(plan, view, name);
  if (view.is(kF64) != reference.is(kF64))
    throw Unsupported(place(plan) + std::string(name) + ": f64 mixed with other types, got " + describe(view) +
                      " and " + describe(reference) + ", expected all or none f64");
}

inline void need_ndim(const Plan& plan, View view, std::string_view name, int ndim) {
  if (view.ndim() != ndim)
    throw InvalidArgument(place(plan) + std::string(name) + ": wrong number of dimensions, got " + describe(view) +
                          ", expected " + std::to_string(ndim));
}

inline void need_dim(const Plan& plan, View view, std::string_view name, int dim, int64_t size) {
  if (view.dim(dim) != size)
    throw InvalidArgument(place(plan) + std::string(name) + ": wrong size of dimension " + std::to_string(dim) +
                          ", got " + describe(view) + ", expected " + std::to_string(size));
}

inline void need_same_shape(const Plan& plan, View view, std::string_view name, View other) {
  if (!same_shape(view, other))
    throw InvalidArgument(place(plan) + std::string(name) + ": shapes differ, got " + describe(view) + ", expected " +
                          describe(other));
}

// The compute type of a floating dtype is float, but double for f64.
template <class F>
F for_compute_type(DType dtype, F with_float, F with_double) {
  return dtype == kF64 ? with_double : with_float;
}

// Shares n rows out among a fixed number of slots, each with its own part of the workspace.
class Slots {
 public:
  explicit Slots(const gestalt_host* host) : team_(host), count_(std::max<int64_t>(1, team_.num_threads())) {}

  const Parallel& team() const { return team_; }
  int64_t count() const { return count_; }

  // f(slot, begin, end); a slot gets at least `grain` rows unless there are fewer.
  template <class F>
  void operator()(int64_t n, int64_t grain, F f) const {
    const int64_t used = std::clamp<int64_t>(n / std::max<int64_t>(grain, 1), 1, count_);
    team_(used, 1, [&](int64_t first, int64_t last) {
      for (int64_t slot = first; slot < last; ++slot) f(slot, n * slot / used, n * (slot + 1) / used);
    });
  }

 private:
  Parallel team_;
  int64_t count_;
};

// Rows that make a piece of work worth a thread, for rows of n elements.
inline int64_t row_grain(int64_t n) { return 8192 / std::max<int64_t>(n, 1) + 1; }

}  // namespace gestalt::kernels_cpu
