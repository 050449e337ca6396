// The plan of core.attention and core.attention_bwd: what a kernel of any device checks.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "gestalt/plan_checks.hpp"

namespace gestalt {

// q [t, n, d], k [t, g, d], v [t, g, e]: t tokens, n query heads, g key/value heads, d size of a query and key head, e size
// of a value head.
//
// score = scale q k, then softcap tanh(score / softcap), then + bias[head, key - query + bias.dim(1) / 2]. With a
// window a token sees itself and the window - 1 tokens before it, and as many after it where not causal. A sink is one
// more logit of a head that takes part in the sum and has no value. Dropout acts on the weights after the softmax.
struct AttentionPlan {
  // sinks, bias, keys and seed are inputs from `extra` on.
  AttentionPlan(const Plan& plan, uint64_t extra)
      : causal(plan.attrs().boolean("causal", true)),
        window(plan.attrs().i64("window", 0)),
        softcap(plan.attrs().f64("softcap", 0)),
        p(plan.attrs().f64("p", 0)),
        use(plan.attrs().i64("use", 0)),
        head0(plan.attrs().i64("head0", 0)),
        keys(extra + 2),
        sinks(plan.has_in(extra) ? extra : 0),
        bias(plan.has_in(extra + 1) ? extra + 1 : 0) {
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
    scale = plan.attrs().f64("scale", 0);
    if (!(scale >= 0))
      throw InvalidArgument(place(plan) + "scale: got " + std::to_string(scale) + ", expected 0 or more");
    if (window < 0)
      throw InvalidArgument(place(plan) + "window: got " + std::to_string(window) + ", expected 0 (none) or more");
    if (!(softcap >= 0))
      throw InvalidArgument(place(plan) + "softcap: got " + std::to_string(softcap) + ", expected 0 (none) or more");
    if (sinks != 0) {
      need_like(plan, plan.in(sinks), "sinks", q);
      need_ndim(plan, plan.in(sinks), "sinks", 1);
      need_dim(plan, plan.in(sinks), "sinks", 0, q.dim(1));
    }
    if (bias != 0) {
      const View distances = plan.in(bias);
      need_like(plan, distances, "bias", q);
      need_ndim(plan, distances, "bias", 2);
      need_dim(plan, distances, "bias", 0, q.dim(1));
      if (distances.dim(1) % 2 == 0)
        throw InvalidArgument(place(plan) + "bias: even number of distances, got " + describe(distances));
    }
    need_dropout(plan);
    if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(q.dim(2), 1)));
  }

  bool drops() const { return p > 0; }

  bool causal;
  int64_t window;  // 0: none
  double softcap, p;  // 0: none
  int64_t use, head0;
  uint64_t keys, sinks, bias;  // numbers of the inputs; sinks and bias 0: absent; seed is keys + 1
  double scale = 0;

 private:
  void need_dropout(const Plan& plan) const {
    if (!(p >= 0 && p < 1))
      throw InvalidArgument(place(plan) + "p: got " + std::to_string(p) + ", expected 0 <= p < 1");
    const int64_t last_head = head0 + plan.in(0).dim(1);
    if (head0 < 0 || last_head > 4096)
      throw InvalidArgument(place(plan) + "head0: got " + std::to_string(head0) + ", expected heads 0 to 4095");
    if (use < 0 || use >= int64_t{1} << 32)
      throw InvalidArgument(place(plan) + "use: got " + std::to_string(use) + ", expected 0 to 4294967295");
    if (!drops()) return;
    if (!plan.has_in(keys) || !plan.has_in(keys + 1))
      throw InvalidArgument(place(plan) + "p: got " + std::to_string(p) + " without keys and seed");
    const View of_tokens = plan.in(keys), seed = plan.in(keys + 1);
    need_dtype(plan, of_tokens, "keys", {kI32});
    need_ndim(plan, of_tokens, "keys", 2);
    need_dim(plan, of_tokens, "keys", 0, plan.in(0).dim(0));
    need_dim(plan, of_tokens, "keys", 1, 2);
    need_dtype(plan, seed, "seed", {kI32});
    need_ndim(plan, seed, "seed", 1);
    need_dim(plan, seed, "seed", 0, 4);
  }
};

}  // namespace gestalt
