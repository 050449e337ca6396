// Self-attention with grouped queries. Shape letters: t tokens, h hidden size, n query heads, g key/value heads, d head
// size.
#include <cmath>

#include "gestalt/ops.hpp"
#include "gestalt/plugin.hpp"

namespace gestalt::attention {

class Attention : public Module {
 public:
  static constexpr std::string_view name = "gestalt.attention";
  static constexpr ConfigKey keys[] = {
      {.name = "hidden", .type = "i64", .min = "1", .doc = "width", .required = true},
      {.name = "heads", .type = "i64", .min = "1", .doc = "query heads", .required = true},
      {.name = "kv_heads", .type = "i64", .default_value = "0", .min = "0", .doc = "key/value heads; 0: as many as query heads"},
      {.name = "head_size", .type = "i64", .default_value = "0", .min = "0", .doc = "0: hidden / heads"},
      {.name = "attention_bias", .type = "bool", .default_value = "false", .doc = "biases of all projections"},
      {.name = "positions", .type = "str", .default_value = "'rotary'", .choices = "rotary|learned|none", .doc = "where order comes from; learned: the embedding adds it"},
      {.name = "rope_theta", .type = "f64", .default_value = "10000.0", .min = "1.0", .when = "positions=rotary", .doc = "base of the rotary frequencies"},
      {.name = "init_std", .type = "f64", .default_value = "0.02", .min = "0.0", .doc = "deviation of initial weights"},
      {.name = "layers", .type = "i64", .default_value = "1", .min = "1", .doc = "depth: `out` starts at init_std / sqrt(2 layers)"}};

  Attention(Declare& d, const Attrs& c)
      : n_(c.i64("heads")),
        g_(c.i64("kv_heads") ? c.i64("kv_heads") : n_),
        d_(c.i64("head_size") ? c.i64("head_size") : c.i64("hidden") / n_),
        rotary_(c.str("positions") == "rotary") {
    if (!c.i64("head_size") && c.i64("hidden") % n_ != 0)
      throw Error(GESTALT_CONFIG_ERROR, "[heads] " + std::to_string(n_) + " does not divide hidden " +
                                            std::to_string(c.i64("hidden")) + "; set head_size");
    if (n_ % g_ != 0)
      throw Error(GESTALT_CONFIG_ERROR, "[kv_heads] " + std::to_string(g_) + " does not divide heads " + std::to_string(n_));
    const double std = c.f64("init_std");
    qkv_ = d.column_linear("qkv", c.i64("hidden"), {n_ * d_, g_ * d_, g_ * d_},
                           {.unit = d_, .bias = c.boolean("attention_bias"), .init = Init::normal(std), .part_names = {"q", "k", "v"}});
    out_ = d.row_linear("out", n_ * d_, c.i64("hidden"),
                        {.unit = d_, .bias = c.boolean("attention_bias"), .init = Init::normal(std / std::sqrt(2.0 * static_cast<double>(c.i64("layers"))))});
    if (rotary_) positions_ = d.child("positions", "gestalt.rotary", c);
    core_ = d.child("core_attention", "gestalt.softmax_attention", c);
    const int64_t ranks = d.axis("tp").size;
    n_ /= ranks;
    g_ /= ranks;
  }

  Tensor emit(Build& b, Tensor x_th) const {
    const auto parts = ops::split_parts(b.call(qkv_, x_th), {n_ * d_, g_ * d_, g_ * d_});
    Tensor q_tnd = heads(parts[0], n_), k_tgd = heads(parts[1], g_), v_tgd = heads(parts[2], g_);
    if (rotary_) {
      const Tensor in[] = {q_tnd, k_tgd};
      const auto turned = b.calls(positions_, in);
      q_tnd = turned.at(0);
      k_tgd = turned.at(1);
    }
    const Tensor o_tnd = b.call(core_, q_tnd, k_tgd, v_tgd);
    return b.call(out_, ops::reshape(o_tnd, {o_tnd.dim(0), n_ * d_}));
  }

 private:
  Tensor heads(Tensor x, int64_t count) const { return ops::reshape(x, {x.dim(0), count, d_}); }

  int64_t n_, g_, d_;
  bool rotary_;
  Linear qkv_, out_;
  Child positions_, core_;
};
GESTALT_COMPONENT(Attention)

// softmax(q k^T / sqrt(d)) v inside each sequence of the batch, causal.
class SoftmaxAttention : public Module {
 public:
  static constexpr std::string_view name = "gestalt.softmax_attention";
  static constexpr ConfigKey keys[] = {
      {.name = "attention_scale", .type = "f64", .default_value = "0.0", .min = "0.0", .doc = "factor on the scores; 0: 1 / sqrt(head size)"}};

  SoftmaxAttention(Declare&, const Attrs& c) : scale_(c.f64("attention_scale")) {}
  Tensor emit(Build& b, Tensor q_tnd, Tensor k_tgd, Tensor v_tgd) const {
    return ops::attention(q_tnd, k_tgd, v_tgd, b.batch("seq_starts"), true, scale_);
  }

 private:
  double scale_;
};
GESTALT_COMPONENT(SoftmaxAttention)

// Rotary positions on queries and keys (RoFormer; halves rotated together).
class Rotary : public Module {
 public:
  static constexpr std::string_view name = "gestalt.rotary";
  static constexpr ConfigKey keys[] = {
      {.name = "rope_theta", .type = "f64", .default_value = "10000.0", .min = "1.0", .doc = "base of the frequencies"}};

  Rotary(Declare&, const Attrs& c) : theta_(c.f64("rope_theta")) {}
  std::vector<Tensor> emit(Build& b, std::span<const Tensor> qk) const {
    std::vector<Tensor> out;
    for (Tensor x_tnd : qk) out.push_back(ops::rotary(x_tnd, b.batch("positions"), {.theta = theta_}));
    return out;
  }

 private:
  double theta_;
};
GESTALT_COMPONENT(Rotary)

}  // namespace gestalt::attention
