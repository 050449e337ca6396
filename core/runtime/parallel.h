#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "gestalt/abi/base.h"

namespace gestalt::core {

// The process's one team of compute threads, published as "gestalt.parallel/1". The first call reads
// GESTALT_NUM_THREADS, else OMP_NUM_THREADS, else takes the processors that this process may run on, and publishes the
// table. [any]
const gestalt_parallel_1* parallel();

// [setup] Another number of threads from now on, at least 1; for the command line and for tests.
void set_num_threads(int64_t threads);

// The ranges of parallel_for, which depend only on n, grain and threads: range i of num_ranges is [begin(i),
// begin(i+1)).
struct Partition {
  int64_t n, num_ranges;
  Partition(int64_t items, int64_t grain, int64_t threads)
      : n(items), num_ranges(std::clamp<int64_t>(items / std::max<int64_t>(grain, 1), 1, threads)) {}
  int64_t begin(int64_t i) const { return n / num_ranges * i + std::min(i, n % num_ranges); }
};

// Calls f(begin, end) on the team; f does not throw.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& f) {
  using Fn = std::remove_reference_t<F>;
  const gestalt_parallel_1* team = parallel();
  auto call = [](void* ctx, int64_t begin, int64_t end) { (*static_cast<Fn*>(ctx))(begin, end); };
  team->parallel_for(team->self, n, grain, call, const_cast<std::remove_const_t<Fn>*>(&f));
}

}  // namespace gestalt::core
