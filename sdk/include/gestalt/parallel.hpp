#pragma once

#include <atomic>
#include <exception>
#include <type_traits>

#include "gestalt/host.hpp"

namespace gestalt {

// The process's team of compute threads ("gestalt.parallel/1"). Looked up once, so make it in a kernel's constructor.
// Without the interface everything runs on the calling thread.
class Parallel {
 public:
  explicit Parallel(const gestalt_host* host)
      : table_(Host(host).interface<gestalt_parallel_1>("gestalt.parallel/1")) {}

  int64_t num_threads() const { return table_ ? table_->num_threads(table_->self) : 1; }

  // Calls f(begin, end) over a partition of [0, n) into at most num_threads ranges of at least `grain` items. The first
  // exception of f is thrown here once all ranges are done. Results must not depend on the partition.
  template <class F>
  void operator()(int64_t n, int64_t grain, F&& f) const {
    if (n <= 0) return;
    if (!table_ || n <= grain) {
      f(int64_t{0}, n);
      return;
    }
    Shared<std::remove_reference_t<F>> shared{&f, {}, {}};
    table_->parallel_for(table_->self, n, grain, &Shared<std::remove_reference_t<F>>::run, &shared);
    if (shared.error) std::rethrow_exception(shared.error);
  }

 private:
  template <class F>
  struct Shared {
    F* f;
    std::atomic<bool> failed;
    std::exception_ptr error;

    static void run(void* self, int64_t begin, int64_t end) {
      auto* shared = static_cast<Shared*>(self);
      try {
        (*shared->f)(begin, end);
      } catch (...) {
        if (!shared->failed.exchange(true)) shared->error = std::current_exception();
      }
    }
  };

  const gestalt_parallel_1* table_;
};

}  // namespace gestalt
