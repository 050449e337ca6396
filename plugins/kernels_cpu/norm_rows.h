#pragma once

#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/loops.h"
#include "plugins/kernels_cpu/strided.h"

// Rows of the norms. Weight gradients are sums over rows: chunks of a fixed number of rows are summed each on its own,
// then added in order, so the bits do not depend on the number of threads.
namespace gestalt::kernels_cpu {

inline int64_t num_rows(View x) {
  int64_t rows = 1;
  for (int d = 0; d + 1 < x.ndim(); ++d) rows *= x.dim(d);
  return rows;
}

inline void need_norm(const Plan& plan, View x, View w, std::string_view name) {
  need_float(plan, x, "x");
  if (x.ndim() < 1) throw InvalidArgument(place(plan) + "x: no dimension to normalise, got " + describe(x));
  need_like(plan, w, name, x);
  need_ndim(plan, w, name, 1);
  need_dim(plan, w, name, 0, x.dim(-1));
}

// mean or rstd: x without its last dimension.
inline void need_statistics(const Plan& plan, View x, View statistics, std::string_view name) {
  need_like(plan, statistics, name, x);
  need_ndim(plan, statistics, name, x.ndim() - 1);
  for (int d = 0; d + 1 < x.ndim(); ++d) need_dim(plan, statistics, name, d, x.dim(d));
}

inline constexpr int64_t kChunkRows = 128;

// Workspace: per slot num_scratch rows, and per chunk num_grads rows, all in the compute type.
inline void plan_norm_workspace(Plan plan, const Slots& slots, int64_t num_scratch, int64_t num_grads = 0) {
  const View x = plan.in(0);
  const int64_t chunks = (num_rows(x) + kChunkRows - 1) / kChunkRows;
  const int64_t rows = slots.count() * num_scratch + chunks * num_grads;
  plan.workspace(static_cast<uint64_t>(rows * x.dim(-1) * (x.is(kF64) ? 8 : 4)));
}

template <class C>
class GradientChunks {
 public:
  static constexpr int64_t kRows = kChunkRows;

  GradientChunks(void* workspace, const Slots& slots, int64_t num_scratch, int64_t num_grads, int64_t n, int64_t rows)
      : slots_(slots),
        scratch_(static_cast<C*>(workspace)),
        grads_(scratch_ + slots.count() * num_scratch * n),
        num_scratch_(num_scratch),
        num_grads_(num_grads),
        n_(n),
        rows_(rows) {}

  int64_t count() const { return (rows_ + kRows - 1) / kRows; }
  int64_t begin(int64_t chunk) const { return chunk * kRows; }
  int64_t end(int64_t chunk) const { return std::min(rows_, (chunk + 1) * kRows); }
  C* scratch(int64_t slot) const { return scratch_ + slot * num_scratch_ * n_; }
  C* grad(int64_t chunk, int64_t i) const { return grads_ + (chunk * num_grads_ + i) * n_; }
  C* clear(int64_t chunk, int64_t i) const {
    C* row = grad(chunk, i);
    std::fill(row, row + n_, C(0));
    return row;
  }
  // Adds gradient i of all chunks and writes it.
  void store(int64_t i, View out, bool accumulate) const {
    constexpr int64_t kWidth = 64;
    const auto add = loops<C>().add_to_double;
    slots_.team()((n_ + kWidth - 1) / kWidth, 4, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        const int64_t at = block * kWidth, n = std::min(kWidth, n_ - at);
        double total[kWidth] = {};
        C result[kWidth];
        for (int64_t chunk = 0; chunk < count(); ++chunk) add(grad(chunk, i) + at, total, n);
        for (int64_t j = 0; j < n; ++j) result[j] = static_cast<C>(total[j]);
        Out<C>(out, accumulate).finish(result, at * out.stride(0), out.stride(0), n);
      }
    });
  }

 private:
  const Slots& slots_;
  C* scratch_;
  C* grads_;
  int64_t num_scratch_, num_grads_, n_, rows_;
};

}  // namespace gestalt::kernels_cpu
