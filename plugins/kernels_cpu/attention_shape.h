#pragma once

#include <algorithm>
#include <cmath>

#include "gestalt/op_plans/attention.hpp"
#include "gestalt/philox.h"
#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/gemm.h"
#include "plugins/kernels_cpu/loops.h"

// What core.attention and core.attention_bwd share: segments and products of tiles. Letters as in AttentionPlan.
namespace gestalt::kernels_cpu {

inline constexpr int64_t kQueryTile = 56;
inline constexpr int64_t kKeyTile = 256;

class AttentionShape {
 public:
  AttentionShape(const Plan& plan, uint64_t extra) : p_(plan, extra) {}

  double scale() const { return p_.scale; }
  // Scores are products times scale() and no more.
  bool plain() const { return p_.softcap == 0 && p_.bias == 0; }
  bool capped() const { return p_.softcap != 0; }
  bool drops() const { return p_.p > 0; }
  bool has_sinks() const { return p_.sinks != 0; }
  bool has_bias() const { return p_.bias != 0; }
  View sinks(const Call& call) const { return call.in(p_.sinks); }
  View bias(const Call& call) const { return call.in(p_.bias); }

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

  // No distance of a pair of tokens may lie outside the bias.
  void check_bias(std::string_view op, const Call& call) const {
    if (!has_bias()) return;
    const View starts = call.in(3);
    const int64_t reach = bias(call).dim(1) / 2;
    for (int64_t i = 0; i < num_segments(starts); ++i)
      if (const int64_t size = start_of(starts, i + 1) - start_of(starts, i); size > reach + 1)
        throw InvalidArgument("[" + std::string(op) + "] seq_starts: a segment of " + std::to_string(size) +
                              " tokens, expected at most " + std::to_string(reach + 1) +
                              ", which bias has distances for");
  }

  // The keys [first_seen, last_seen) that query `at` of the segment [first, last) sees.
  int64_t first_seen(int64_t at, int64_t first) const {
    return p_.window > 0 ? std::max(first, at - p_.window + 1) : first;
  }
  int64_t last_seen(int64_t at, int64_t last) const {
    if (p_.causal) return at + 1;
    return p_.window > 0 ? std::min(last, at + p_.window) : last;
  }

  // Makes n products of one query with the keys from `key` on into scores, when they are not plain(). slope (may be
  // null) becomes the derivative of the capped score by the score before, over what capped() adds to it.
  template <class C>
  void finish_scores(const Call& call, int64_t head, int64_t at, int64_t key, int64_t n, C* row, C* slope) const {
    if (capped()) {
      const C cap = static_cast<C>(p_.softcap);
      loops<C>().softcap(row, static_cast<C>(p_.scale), cap, row, n);
      if (slope != nullptr)
        for (int64_t i = 0; i < n; ++i) slope[i] = C(1) - row[i] / cap * (row[i] / cap);
    } else {
      loops<C>().scale(row, static_cast<C>(p_.scale), row, n);
    }
    if (!has_bias()) return;
    const View b = bias(call);
    const In<C> in(b);
    const int64_t from = head * b.stride(0) + (key - at + b.dim(1) / 2) * b.stride(1);
    for (int64_t i = 0; i < n; ++i) row[i] += in.one(from + i * b.stride(1));
  }

  // Scales what dropout keeps of n numbers by 1 / (1 - p), and zeroes the rest: those of query `at` with the keys from
  // `key` on, in a segment that starts at `first` (see gestalt/philox.h).
  template <class C>
  void drop(const Call& call, int64_t head, int64_t at, int64_t first, int64_t key, int64_t n, C* row) const {
    const View keys = call.in(p_.keys), seed = call.in(p_.keys + 1);
    const auto wide = [&](int64_t i) {
      return word(seed, i * seed.stride(0)) | uint64_t{word(seed, (i + 1) * seed.stride(0))} << 32;
    };
    const uint64_t step = wide(2), own_key = philox_scores_key(wide(0), step, static_cast<uint32_t>(p_.use));
    const uint32_t sample = word(keys, at * keys.stride(0)),
                   position = word(keys, at * keys.stride(0) + keys.stride(1));
    const uint32_t column = word(keys, first * keys.stride(0) + keys.stride(1)) + static_cast<uint32_t>(key - first);
    const uint32_t which = static_cast<uint32_t>(p_.head0 + head) << 20, threshold = philox_threshold(p_.p);
    const C factor = static_cast<C>(1 / (1 - p_.p));
    // Keys up to the next multiple of 4, then whole counters.
    const int64_t lead = std::min<int64_t>(n, (4 - column % 4) % 4);
    const PhiloxBlock block = philox(own_key, static_cast<uint32_t>(step), sample, position, which | column / 4);
    for (int64_t i = 0; i < lead; ++i)
      row[i] = block.word[column % 4 + static_cast<uint32_t>(i)] >> 8 < threshold ? C(0) : row[i] * factor;
    loops<C>().dropout(row + lead, factor, threshold, own_key, static_cast<uint32_t>(step), sample, position,
                       which | (column + 3) / 4, row + lead, n - lead);
  }

 private:
  static uint32_t word(View view, int64_t offset) { return static_cast<uint32_t>(In<int64_t>(view).one(offset)); }

  AttentionPlan p_;
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
