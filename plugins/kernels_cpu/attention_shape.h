#pragma once

#include <algorithm>
#include <cmath>

#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/gemm.h"

// What core.attention and core.attention_bwd share: shapes, segments and products of tiles. Letters: t tokens, n query
// heads, g key/value heads, d size of a query and key head, e size of a value head.
namespace gestalt::kernels_cpu {

inline constexpr int64_t kQueryTile = 56;
inline constexpr int64_t kKeyTile = 256;

class AttentionShape {
 public:
  explicit AttentionShape(const Plan& plan) : causal_(plan.attrs().boolean("causal", true)) {
    const View q = plan.in(0), k = plan.in(1), v = plan.in(2), starts = plan.in(3);
    need_float(plan, q, "q");
    need_ndim(plan, q, "q", 3);
    for (auto [view, name] : {std::pair{k, "k"}, std::pair{v, "v"}}) {
      need_like(plan, view, name, q);
      need_ndim(plan, view, name, 3);
      need_dim(plan, view, name, 0, q.dim(0));
      need_dim(plan, view, name, 1, k.dim(1));
    }
    need_dim(plan, k, "k", 2, q.dim(2));
    if (k.dim(1) < 1 || q.dim(1) % k.dim(1) != 0)
      throw InvalidArgument(place(plan) + "q: heads cannot be shared out among key heads, got " + describe(q) +
                            " and k " + describe(k) + ", expected a multiple of " + std::to_string(k.dim(1)));
    need_index(plan, starts, "seq_starts");
    need_ndim(plan, starts, "seq_starts", 1);
    scale_ = plan.attrs().f64("scale", 0);
    if (!(scale_ >= 0))
      throw InvalidArgument(place(plan) + "scale: got " + std::to_string(scale_) + ", expected 0 or more");
    if (scale_ == 0) scale_ = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(q.dim(2), 1)));
  }

  bool causal() const { return causal_; }
  double scale() const { return scale_; }

  // A segment that runs backwards or beyond the tokens would make a kernel read outside its tensors.
  static void check_segments(std::string_view op, View starts, int64_t tokens) {
    int64_t previous = 0;
    for (int64_t i = 0; i < starts.dim(0); ++i) {
      const int64_t start = start_of(starts, i);
      if (start < previous || start > tokens)
        throw InvalidArgument("[" + std::string(op) + "] seq_starts: out of order, got " + std::to_string(start) +
                              " at " + std::to_string(i) + ", expected " + std::to_string(previous) + " to " +
                              std::to_string(tokens));
      previous = start;
    }
  }
  static int64_t start_of(View starts, int64_t i) { return In<int64_t>(starts).one(i * starts.stride(0)); }
  static int64_t num_segments(View starts) { return std::max<int64_t>(0, starts.dim(0) - 1); }

  // Keys that query `at` sees among [first, last).
  int64_t seen(int64_t at, int64_t first, int64_t last) const {
    return causal_ ? std::clamp<int64_t>(at + 1 - first, 0, last - first) : last - first;
  }

 private:
  bool causal_;
  double scale_;
};

// Tokens from `token` on of one head, as a matrix [tokens, size].
inline Matrix head_matrix(View x, int64_t token, int64_t head) {
  return {x.data<char>() + (token * x.stride(0) + head * x.stride(1)) * size_of(x.dtype()), x.dtype(), x.stride(0),
          x.stride(2)};
}
inline Matrix transposed(Matrix x) { return {x.data, x.dtype, x.col, x.row}; }
template <class C>
Matrix dense(const C* data, int64_t columns) {
  return {data, compute_dtype<C>(), columns, 1};
}

// y (+)= a b on the calling thread, y dense.
template <class C>
void multiply_tile(int64_t m, int64_t n, int64_t k, const Matrix& a, const Matrix& b, C* y, int64_t y_row, bool add,
                   void* scratch) {
  multiply<C>(nullptr,
              {.m = m,
               .n = n,
               .k = k,
               .a = a,
               .b = b,
               .y = y,
               .y_dtype = compute_dtype<C>(),
               .y_row = y_row,
               .y_col = 1,
               .accumulate = add},
              scratch);
}

// Zeroes x at the tokens that no segment covers.
template <class C>
void clear_uncovered(View x, View starts) {
  const int64_t last = starts.dim(0) - 1, tokens = x.dim(0);
  const int64_t begin = last < 0 ? 0 : AttentionShape::start_of(starts, 0);
  const int64_t end = last < 0 ? 0 : AttentionShape::start_of(starts, last);
  const Out<C> out(x);
  for (int64_t t = 0; t < tokens; ++t) {
    if (t >= begin && t < end) continue;
    for (int64_t head = 0; head < x.dim(1); ++head) {
      const int64_t at = t * x.stride(0) + head * x.stride(1);
      if (x.ndim() == 2) {
        out.one(at, C(0));
      } else {
        for (int64_t i = 0; i < x.dim(2); ++i) out.one(at + i * x.stride(2), C(0));
      }
    }
  }
}

}  // namespace gestalt::kernels_cpu
