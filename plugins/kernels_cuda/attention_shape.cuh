#pragma once

#include <cmath>

#include "gestalt/op_plans/attention.hpp"
#include "gestalt/philox.h"
#include "plugins/kernels_cuda/rows.cuh"

// What the attention kernels share. Letters and formulas as in AttentionPlan.
namespace gestalt::kernels_cuda {

// Heads of tokens as an argument of a kernel.
struct Heads {
  Side side;
  int64_t token, head, step;
};
inline Heads heads_of(View v) { return {side_of(v), v.stride(0), v.stride(1), v.ndim() > 2 ? v.stride(2) : 0}; }

// The keys [begin, end) that a token sees, the start of its segment, and whether it has one.
struct Seen {
  int32_t begin, end, first, covered;
};

struct AttentionArgs {
  Heads q, k, v, o, lse;
  Heads grad, dq, dk, dv;  // of the backward
  Side sinks, bias, keys, seed;
  int64_t sinks_step, bias_head, bias_step, bias_size, keys_token, keys_step, seed_step;
  const Seen* seen;
  int tokens, heads, groups, d, e;
  double scale, softcap;
  bool has_sinks, has_bias, drops;
  uint32_t threshold, use, head0;
  double keep;  // 1 / (1 - p)
};

// What a query of a head needs to know of dropout.
struct Drop {
  uint64_t key;
  uint32_t step, sample, position, column0, which;
};
__device__ __forceinline__ Drop drop_of(const AttentionArgs& a, int head, int query, int first) {
  const auto word = [](const Side& side, int64_t at) { return static_cast<uint32_t>(load_one<int64_t>(side, at)); };
  const auto wide = [&](int64_t i) {
    return word(a.seed, i * a.seed_step) | static_cast<uint64_t>(word(a.seed, (i + 1) * a.seed_step)) << 32;
  };
  const uint64_t step = wide(2);
  return {philox_scores_key(wide(0), step, a.use),
          static_cast<uint32_t>(step),
          word(a.keys, query * a.keys_token),
          word(a.keys, query * a.keys_token + a.keys_step),
          word(a.keys, first * a.keys_token + a.keys_step) - static_cast<uint32_t>(first),
          (a.head0 + static_cast<uint32_t>(head)) << 20};
}
// What dropout multiplies the weight of a key with.
template <class C>
__device__ __forceinline__ C kept(const AttentionArgs& a, const Drop& drop, int key) {
  const uint32_t column = drop.column0 + static_cast<uint32_t>(key);
  const PhiloxBlock block = philox(drop.key, drop.step, drop.sample, drop.position, drop.which | column / 4);
  const uint32_t which = column % 4;
  const uint32_t word = which == 0   ? block.word[0]
                        : which == 1 ? block.word[1]
                        : which == 2 ? block.word[2]
                                     : block.word[3];
  return word >> 8 < a.threshold ? C(0) : static_cast<C>(a.keep);
}

// The score of a product; slope: its derivative by the product.
template <class C>
__device__ __forceinline__ C score_of(const AttentionArgs& a, int head, int query, int key, C product, C* slope) {
  C score = product * static_cast<C>(a.scale);
  *slope = static_cast<C>(a.scale);
  if (a.softcap != 0) {
    const C bent = tanh(score / static_cast<C>(a.softcap));
    score = bent * static_cast<C>(a.softcap);
    *slope *= C(1) - bent * bent;
  }
  if (a.has_bias) {
    const int64_t at = key - query + a.bias_size / 2;
    score +=
        at >= 0 && at < a.bias_size ? load_one<C>(a.bias, head * a.bias_head + at * a.bias_step) : not_a_number<C>();
  }
  return score;
}

// Fills seen for every token.
void find_segments(const Call& call, std::string_view op, View starts, int tokens, bool causal, int64_t window,
                   Seen* seen);

// The checked attributes and inputs of one plan.
class AttentionShape {
 public:
  // sinks, bias, keys and seed are inputs from `extra` on.
  AttentionShape(const Plan& plan, uint64_t extra);

  // All but the outputs and what only the backward has.
  AttentionArgs args(const Call& call) const;
  bool has_sinks() const { return p_.sinks != 0; }
  bool has_bias() const { return p_.bias != 0; }
  bool causal() const { return p_.causal; }
  int64_t window() const { return p_.window; }
  bool drops() const { return p_.drops(); }
  double softcap() const { return p_.softcap; }
  static uint64_t seen_bytes(int64_t tokens) { return static_cast<uint64_t>(tokens) * sizeof(Seen); }

 private:
  AttentionPlan p_;
};

}  // namespace gestalt::kernels_cuda
