// Self-attention with grouped queries. Shape letters: t tokens, h hidden size, n query heads, g key/value heads, d head
// size.
#include <cmath>

#include "gestalt/ops.hpp"
#include "gestalt/plugin.hpp"
#include "support/rotary_keys.h"

namespace gestalt::attention {

class Attention : public Module {
 public:
  static constexpr std::string_view name = "gestalt.attention";
  static constexpr ConfigKey kOwn[] = {
      {.name = "hidden", .type = "i64", .min = "1", .doc = "width", .required = true},
      {.name = "heads", .type = "i64", .min = "1", .doc = "query heads", .required = true},
      {.name = "kv_heads", .type = "i64", .default_value = "0", .min = "0", .doc = "key/value heads; 0: as many as query heads"},
      {.name = "head_size", .type = "i64", .default_value = "0", .min = "0", .doc = "0: hidden / heads"},
      {.name = "attention_bias", .type = "bool", .default_value = "false", .doc = "biases of all projections"},
      {.name = "qkv_bias", .type = "bool", .default_value = "false", .doc = "biases of the projections to queries, keys and values"},
      {.name = "qk_norm", .type = "str", .default_value = "'none'", .choices = "none|head|projection", .doc = "RMS norm of queries and keys: of each head, or of all heads at once"},
      {.name = "norm_eps", .type = "f64", .default_value = "1e-5", .min = "0.0", .doc = "of the norm of queries and keys"},
      {.name = "norm_offset", .type = "f64", .default_value = "0.0", .doc = "of the norm of queries and keys"},
      {.name = "attention_scale", .type = "f64", .default_value = "0.0", .min = "0.0", .doc = "factor on the scores; 0: 1 / sqrt(head size)"},
      {.name = "attention_softcap", .type = "f64", .default_value = "0.0", .min = "0.0", .doc = "scores stay within +- this; 0: no cap"},
      {.name = "attention_sinks", .type = "bool", .default_value = "false", .doc = "each head may attend to nothing, with a logit that is learned"},
      {.name = "attention_gate", .type = "bool", .default_value = "false", .doc = "what the heads give is multiplied by a sigmoid of the input"},
      {.name = "window", .type = "i64", .default_value = "0", .min = "0", .doc = "a token sees itself and the window - 1 before it; 0: all"},
      {.name = "positions", .type = "str", .default_value = "'rotary'", .choices = "rotary|learned|none", .doc = "where order comes from; learned: the embedding adds it"},
      {.name = "init_std", .type = "f64", .default_value = "0.02", .min = "0.0", .doc = "deviation of initial weights"},
      {.name = "layers", .type = "i64", .default_value = "1", .min = "1", .doc = "depth: `out` starts at init_std / sqrt(2 layers)"}};
  static constexpr auto keys = support::joined(kOwn, support::rotary_keys("positions=rotary"));

  Attention(Declare& d, const Attrs& c)
      : n_(c.i64("heads")),
        g_(c.i64("kv_heads") ? c.i64("kv_heads") : n_),
        d_(c.i64("head_size") ? c.i64("head_size") : c.i64("hidden") / n_),
        rotary_(c.str("positions") == "rotary"),
        gated_(c.boolean("attention_gate")),
        has_sinks_(c.boolean("attention_sinks")),
        norm_(c.str("qk_norm")) {
    if (!c.i64("head_size") && c.i64("hidden") % n_ != 0)
      throw Error(GESTALT_CONFIG_ERROR, "[heads] " + std::to_string(n_) + " does not divide hidden " +
                                            std::to_string(c.i64("hidden")) + "; set head_size");
    if (n_ % g_ != 0)
      throw Error(GESTALT_CONFIG_ERROR, "[kv_heads] " + std::to_string(g_) + " does not divide heads " + std::to_string(n_));
    const double std = c.f64("init_std");
    const bool bias = c.boolean("attention_bias");
    LinearOptions fused{.unit = d_, .bias = bias || c.boolean("qkv_bias"), .init = Init::normal(std), .part_names = {"q", "k", "v"}};
    if (gated_) fused.part_names.push_back("gate");
    qkv_ = d.column_linear("qkv", c.i64("hidden"), parts(), fused);
    if (has_sinks_) sinks_ = d.param("sinks", {n_}, Init::normal(std), {{0, "tp"}});
    out_ = d.row_linear("out", n_ * d_, c.i64("hidden"),
                        {.unit = d_, .bias = bias, .init = Init::normal(std / std::sqrt(2.0 * static_cast<double>(c.i64("layers"))))});
    if (norm_ != "none") {
      const bool head = norm_ == "head";
      q_norm_ = d.child({"qk_norm", "q_norm"}, "gestalt.rms_norm", c, {{"hidden", head ? d_ : n_ * d_}});
      k_norm_ = d.child({"qk_norm", "k_norm"}, "gestalt.rms_norm", c, {{"hidden", head ? d_ : g_ * d_}});
    }
    if (rotary_) positions_ = d.child("positions", "gestalt.rotary", c);
    core_ = d.child("core_attention", "gestalt.softmax_attention", c, {{"kv_heads", g_}, {"head_size", d_}});
    const int64_t ranks = d.axis("tp").size;
    n_ /= ranks;
    g_ /= ranks;
  }

  Tensor emit(Build& b, Tensor x_th) const {
    const auto projected = ops::split_parts(b.call(qkv_, x_th), parts());
    Tensor q = projected[0], k = projected[1];
    if (norm_ == "projection") {
      q = b.call(q_norm_, q);
      k = b.call(k_norm_, k);
    }
    Tensor q_tnd = heads(q, n_), k_tgd = heads(k, g_), v_tgd = heads(projected[2], g_);
    if (norm_ == "head") {
      q_tnd = b.call(q_norm_, q_tnd);
      k_tgd = b.call(k_norm_, k_tgd);
    }
    if (rotary_) {
      const Tensor in[] = {q_tnd, k_tgd};
      const auto turned = b.calls(positions_, in);
      q_tnd = turned.at(0);
      k_tgd = turned.at(1);
    }
    // A core without sinks refuses the fourth input.
    std::vector<Tensor> in = {q_tnd, k_tgd, v_tgd};
    if (has_sinks_) in.push_back(b.param(sinks_));
    const Tensor o_tnd = b.calls(core_, in).at(0);
    Tensor o_th = ops::reshape(o_tnd, {o_tnd.dim(0), n_ * d_});
    if (gated_) o_th = ops::mul(o_th, ops::sigmoid(projected[3]));
    return b.call(out_, o_th);
  }

 private:
  // Of the fused projection: queries, keys, values, and the gate where there is one.
  Shape parts() const {
    Shape sizes = {n_ * d_, g_ * d_, g_ * d_};
    if (gated_) sizes.push_back(n_ * d_);
    return sizes;
  }
  Tensor heads(Tensor x, int64_t count) const { return ops::reshape(x, {x.dim(0), count, d_}); }

  int64_t n_, g_, d_;
  bool rotary_, gated_, has_sinks_;
  std::string norm_;
  Linear qkv_, out_;
  Param sinks_;
  Child q_norm_, k_norm_, positions_, core_;
};
GESTALT_COMPONENT(Attention)

// softmax(q k^T / sqrt(d)) v inside each sequence of the batch, causal. A fourth input [n] are sinks: one more logit of
// each head, without a value. Keys and values are state: in generation a pass brings those of its new tokens and finds
// the others.
class SoftmaxAttention : public Module {
 public:
  static constexpr std::string_view name = "gestalt.softmax_attention";
  static constexpr ConfigKey keys[] = {
      {.name = "attention_scale", .type = "f64", .default_value = "0.0", .min = "0.0", .doc = "factor on the scores; 0: 1 / sqrt(head size)"},
      {.name = "attention_softcap", .type = "f64", .default_value = "0.0", .min = "0.0", .doc = "scores stay within +- this; 0: no cap"},
      {.name = "window", .type = "i64", .default_value = "0", .min = "0", .doc = "a token sees itself and the window - 1 before it; 0: all"},
      {.name = "kv_heads", .type = "i64", .default_value = "0", .min = "0", .doc = "key/value heads, of what generation keeps; 0: it keeps nothing"},
      {.name = "head_size", .type = "i64", .default_value = "0", .min = "0", .doc = "of keys"},
      {.name = "value_size", .type = "i64", .default_value = "0", .min = "0", .doc = "of values; 0: head_size"}};

  SoftmaxAttention(Declare& d, const Attrs& c) : keeps_(c.i64("kv_heads") > 0) {
    if (keeps_) {
      const int64_t g = c.i64("kv_heads"), size = c.i64("head_size");
      k_ = d.state_per_token("k", {g, size}, {0, "tp"});
      v_ = d.state_per_token("v", {g, c.i64("value_size") ? c.i64("value_size") : size}, {0, "tp"});
    }
    options_.scale = c.f64("attention_scale");
    options_.softcap = c.f64("attention_softcap");
    options_.window = c.i64("window");
  }
  Tensor emit(Build& b, std::span<const Tensor> in) const {
    if (in.size() != 3 && in.size() != 4)
      throw InvalidArgument("[gestalt.softmax_attention] got " + std::to_string(in.size()) +
                            " input tensors, expected queries, keys, values and perhaps sinks");
    ops::AttentionOptions options = options_;
    if (in.size() == 4) options.sinks_n = in[3];
    if (const Tensor k_state = keeps_ ? b.state(k_) : Tensor())
      return ops::attention_cached(in[0], in[1], in[2], {k_state, b.state(v_)}, ops::sequences_of(b), options);
    return ops::attention(in[0], in[1], in[2], b.batch("seq_starts"), options);
  }

 private:
  bool keeps_;
  State k_, v_;
  ops::AttentionOptions options_;
};
GESTALT_COMPONENT(SoftmaxAttention)

}  // namespace gestalt::attention
