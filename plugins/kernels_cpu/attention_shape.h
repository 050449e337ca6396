#pragma once

#include <algorithm>
#include <cmath>

#include "gestalt/philox.h"
#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/gemm.h"
#include "plugins/kernels_cpu/loops.h"

// What core.attention and core.attention_bwd share: shapes, segments and products of tiles. Letters: t tokens, n query
// heads, g key/value heads, d size of a query and key head, e size of a value head.
//
// score = scale q k, then softcap tanh(score / softcap), then + bias[head, key - query + bias.dim(1) / 2]. With a
// window a token sees itself and the window - 1 tokens before it, and as many after it where not causal. A sink is one
// more logit of a head that takes part in the sum and has no value. Dropout acts on the weights after the softmax.
namespace gestalt::kernels_cpu {

inline constexpr int64_t kQueryTile = 56;
inline constexpr int64_t kKeyTile = 256;

class AttentionShape {
 public:
  // sinks, bias, keys and seed are inputs from `extra` on.
  AttentionShape(const Plan& plan, uint64_t extra)
      : causal_(plan.attrs().boolean("causal", true)),
        window_(plan.attrs().i64("window", 0)),
        softcap_(plan.attrs().f64("softcap", 0)),
        p_(plan.attrs().f64("p", 0)),
        use_(plan.attrs().i64("use", 0)),
        head0_(plan.attrs().i64("head0", 0)),
        keys_(extra + 2),
        sinks_(plan.has_in(extra) ? extra : 0),
        bias_(plan.has_in(extra + 1) ? extra + 1 : 0) {
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
    if (window_ < 0)
      throw InvalidArgument(place(plan) + "window: got " + std::to_string(window_) + ", expected 0 (none) or more");
    if (!(softcap_ >= 0))
      throw InvalidArgument(place(plan) + "softcap: got " + std::to_string(softcap_) + ", expected 0 (none) or more");
    if (sinks_ != 0) {
      need_like(plan, plan.in(sinks_), "sinks", q);
      need_ndim(plan, plan.in(sinks_), "sinks", 1);
      need_dim(plan, plan.in(sinks_), "sinks", 0, q.dim(1));
    }
    if (bias_ != 0) {
      const View bias = plan.in(bias_);
      need_like(plan, bias, "bias", q);
      need_ndim(plan, bias, "bias", 2);
      need_dim(plan, bias, "bias", 0, q.dim(1));
      if (bias.dim(1) % 2 == 0)
        throw InvalidArgument(place(plan) + "bias: even number of distances, got " + describe(bias));
    }
    need_dropout(plan);
    if (scale_ == 0) scale_ = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(q.dim(2), 1)));
  }

  double scale() const { return scale_; }
  // Scores are products times scale() and no more.
  bool plain() const { return softcap_ == 0 && bias_ == 0; }
  bool capped() const { return softcap_ != 0; }
  bool drops() const { return p_ > 0; }
  bool has_sinks() const { return sinks_ != 0; }
  bool has_bias() const { return bias_ != 0; }
  View sinks(const Call& call) const { return call.in(sinks_); }
  View bias(const Call& call) const { return call.in(bias_); }

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
    return window_ > 0 ? std::max(first, at - window_ + 1) : first;
  }
  int64_t last_seen(int64_t at, int64_t last) const {
    if (causal_) return at + 1;
    return window_ > 0 ? std::min(last, at + window_) : last;
  }

  // Makes n products of one query with the keys from `key` on into scores, when they are not plain(). slope (may be
  // null) becomes the derivative of the capped score by the score before, over what capped() adds to it.
  template <class C>
  void finish_scores(const Call& call, int64_t head, int64_t at, int64_t key, int64_t n, C* row, C* slope) const {
    if (capped()) {
      const C cap = static_cast<C>(softcap_);
      loops<C>().softcap(row, static_cast<C>(scale_), cap, row, n);
      if (slope != nullptr)
        for (int64_t i = 0; i < n; ++i) slope[i] = C(1) - row[i] / cap * (row[i] / cap);
    } else {
      loops<C>().scale(row, static_cast<C>(scale_), row, n);
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
    const View keys = call.in(keys_), seed = call.in(keys_ + 1);
    const auto wide = [&](int64_t i) {
      return word(seed, i * seed.stride(0)) | uint64_t{word(seed, (i + 1) * seed.stride(0))} << 32;
    };
    const uint64_t step = wide(2), own_key = philox_scores_key(wide(0), step, static_cast<uint32_t>(use_));
    const uint32_t sample = word(keys, at * keys.stride(0)),
                   position = word(keys, at * keys.stride(0) + keys.stride(1));
    const uint32_t column = word(keys, first * keys.stride(0) + keys.stride(1)) + static_cast<uint32_t>(key - first);
    const uint32_t which = static_cast<uint32_t>(head0_ + head) << 20, threshold = philox_threshold(p_);
    const C factor = static_cast<C>(1 / (1 - p_));
    // Keys up to the next multiple of 4, then whole counters.
    const int64_t lead = std::min<int64_t>(n, (4 - column % 4) % 4);
    const PhiloxBlock block = philox(own_key, static_cast<uint32_t>(step), sample, position, which | column / 4);
    for (int64_t i = 0; i < lead; ++i)
      row[i] = block.word[column % 4 + static_cast<uint32_t>(i)] >> 8 < threshold ? C(0) : row[i] * factor;
    loops<C>().dropout(row + lead, factor, threshold, own_key, static_cast<uint32_t>(step), sample, position,
                       which | (column + 3) / 4, row + lead, n - lead);
  }

 private:
  void need_dropout(const Plan& plan) const {
    if (!(p_ >= 0 && p_ < 1))
      throw InvalidArgument(place(plan) + "p: got " + std::to_string(p_) + ", expected 0 <= p < 1");
    const int64_t last_head = head0_ + plan.in(0).dim(1);
    if (head0_ < 0 || last_head > 4096)
      throw InvalidArgument(place(plan) + "head0: got " + std::to_string(head0_) + ", expected heads 0 to 4095");
    if (use_ < 0 || use_ >= int64_t{1} << 32)
      throw InvalidArgument(place(plan) + "use: got " + std::to_string(use_) + ", expected 0 to 4294967295");
    if (!drops()) return;
    if (!plan.has_in(keys_) || !plan.has_in(keys_ + 1))
      throw InvalidArgument(place(plan) + "p: got " + std::to_string(p_) + " without keys and seed");
    const View keys = plan.in(keys_), seed = plan.in(keys_ + 1);
    need_dtype(plan, keys, "keys", {kI32});
    need_ndim(plan, keys, "keys", 2);
    need_dim(plan, keys, "keys", 0, plan.in(0).dim(0));
    need_dim(plan, keys, "keys", 1, 2);
    need_dtype(plan, seed, "seed", {kI32});
    need_ndim(plan, seed, "seed", 1);
    need_dim(plan, seed, "seed", 0, 4);
  }
  static uint32_t word(View view, int64_t offset) { return static_cast<uint32_t>(In<int64_t>(view).one(offset)); }

  bool causal_;
  int64_t window_;
  double softcap_, p_;
  int64_t use_, head0_;
  uint64_t keys_, sinks_, bias_;  // numbers of the inputs; 0: absent
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
