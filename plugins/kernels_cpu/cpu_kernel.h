#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "gestalt/kernel.hpp"
#include "gestalt/plan_checks.hpp"

// What all kernels of this plugin share: who they are, and how rows are shared out among threads.
namespace gestalt::kernels_cpu {

// Base of a kernel class; a kernel that honours the accumulate bit overrides flags.
struct CpuKernel {
  static constexpr std::string_view device = "cpu", backend = "gestalt.cpu";
  static constexpr uint64_t flags =
      GESTALT_KERNEL_CAPTURABLE | GESTALT_KERNEL_DETERMINISTIC | GESTALT_KERNEL_STRIDED | GESTALT_KERNEL_ANY_SHAPE;
  static constexpr uint64_t accumulating = flags | GESTALT_KERNEL_ACCUMULATES;
};

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
