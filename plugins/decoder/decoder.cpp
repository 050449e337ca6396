// A language model of equal blocks: embedding, blocks, norm, head, loss. Shape letters: t tokens, h hidden size, v
// vocabulary.
#include <string>

#include "gestalt/ops.hpp"
#include "gestalt/plugin.hpp"

namespace gestalt::decoder {

class Decoder : public Module {
 public:
  static constexpr std::string_view name = "gestalt.decoder";
  static constexpr ConfigKey keys[] = {
      {.name = "vocab", .type = "i64", .min = "1", .doc = "vocabulary", .required = true},
      {.name = "hidden", .type = "i64", .min = "1", .doc = "width", .required = true},
      {.name = "layers", .type = "i64", .min = "1", .doc = "blocks", .required = true},
      {.name = "heads", .type = "i64", .min = "1", .doc = "query heads", .required = true},
      {.name = "kv_heads", .type = "i64", .default_value = "0", .min = "0", .doc = "key/value heads; 0: as many as query heads"},
      {.name = "head_size", .type = "i64", .default_value = "0", .min = "0", .doc = "0: hidden / heads"},
      {.name = "ffn", .type = "i64", .min = "1", .doc = "inner width of the MLP", .required = true},
      {.name = "seq_len", .type = "i64", .min = "1", .doc = "longest sequence, tokens", .required = true},
      {.name = "activation", .type = "str", .default_value = "'gelu'", .choices = "gelu|gelu_erf|silu|relu|swiglu", .doc = "of the MLP"},
      {.name = "norm", .type = "str", .default_value = "'rms'", .choices = "rms|layer", .doc = "kind of the norms"},
      {.name = "norm_eps", .type = "f64", .default_value = "1e-5", .min = "0.0", .doc = "of the norms"},
      {.name = "positions", .type = "str", .default_value = "'rotary'", .choices = "rotary|learned|none", .doc = "where order comes from"},
      {.name = "rope_theta", .type = "f64", .default_value = "10000.0", .min = "1.0", .when = "positions=rotary", .doc = "base of the rotary frequencies"},
      {.name = "attention_bias", .type = "bool", .default_value = "false", .doc = "biases of the attention's projections"},
      {.name = "mlp_bias", .type = "bool", .default_value = "false", .doc = "biases of the MLP"},
      {.name = "tied", .type = "bool", .default_value = "true", .doc = "the head uses the embedding table"},
      {.name = "dropout", .type = "f64", .default_value = "0.0", .min = "0.0", .max = "0.99", .doc = "of every residual branch and of the embedding"},
      {.name = "init_std", .type = "f64", .default_value = "0.02", .min = "0.0", .doc = "deviation of initial weights"}};

  Decoder(Declare& d, const Attrs& c) : tied_(c.boolean("tied")) {
    embedding_ = d.child("embedding", "gestalt.embedding", c);
    const std::string_view norm = c.str("norm") == "rms" ? "gestalt.rms_norm" : "gestalt.layer_norm";
    for (int64_t i = 0; i < c.i64("layers"); ++i) {
      blocks_.push_back(d.child({"block", "layers." + std::to_string(i)}, "gestalt.block", c, {{"layer", i}}));
      d.boundary(blocks_.back());
    }
    norm_ = d.child({"norm", "final_norm"}, norm, c);
    if (tied_) table_ = d.tie("embedding.weight");
    head_ = d.child("head", "gestalt.head", c);
    loss_ = d.child("loss", "gestalt.cross_entropy", c);
  }

  std::vector<Tensor> emit(Build& b, std::span<const Tensor>) const {
    Tensor x_th = b.call(embedding_, b.batch("tokens"));
    for (Child block : blocks_) x_th = b.call(block, x_th);
    x_th = b.call(norm_, x_th);
    const Tensor logits_tv = tied_ ? b.call(head_, x_th, b.param(table_)) : b.call(head_, x_th);
    if (b.phase() == Phase::kInfer) return {logits_tv};
    const Tensor in[] = {logits_tv};
    b.calls(loss_, in);
    return {};
  }

 private:
  bool tied_;
  Child embedding_, norm_, head_, loss_;
  Param table_;
  std::vector<Child> blocks_;
};
GESTALT_COMPONENT(Decoder)

// x + attention(norm(x)), then x + mlp(norm(x)).
class Block : public Module {
 public:
  static constexpr std::string_view name = "gestalt.block";
  static constexpr ConfigKey keys[] = {
      {.name = "hidden", .type = "i64", .min = "1", .doc = "width", .required = true},
      {.name = "layer", .type = "i64", .default_value = "0", .min = "0", .doc = "index in the stack"},
      {.name = "layers", .type = "i64", .default_value = "1", .min = "1", .doc = "depth of the stack"},
      {.name = "heads", .type = "i64", .min = "1", .doc = "query heads", .required = true},
      {.name = "kv_heads", .type = "i64", .default_value = "0", .min = "0", .doc = "key/value heads; 0: as many as query heads"},
      {.name = "head_size", .type = "i64", .default_value = "0", .min = "0", .doc = "0: hidden / heads"},
      {.name = "ffn", .type = "i64", .min = "1", .doc = "inner width of the MLP", .required = true},
      {.name = "activation", .type = "str", .default_value = "'gelu'", .doc = "of the MLP"},
      {.name = "norm", .type = "str", .default_value = "'rms'", .choices = "rms|layer", .doc = "kind of the norms"},
      {.name = "norm_eps", .type = "f64", .default_value = "1e-5", .min = "0.0", .doc = "of the norms"},
      {.name = "positions", .type = "str", .default_value = "'rotary'", .doc = "where order comes from"},
      {.name = "rope_theta", .type = "f64", .default_value = "10000.0", .min = "1.0", .when = "positions=rotary", .doc = "base of the rotary frequencies"},
      {.name = "attention_bias", .type = "bool", .default_value = "false", .doc = "biases of the attention's projections"},
      {.name = "mlp_bias", .type = "bool", .default_value = "false", .doc = "biases of the MLP"},
      {.name = "dropout", .type = "f64", .default_value = "0.0", .min = "0.0", .max = "0.99", .doc = "of both branches"},
      {.name = "init_std", .type = "f64", .default_value = "0.02", .min = "0.0", .doc = "deviation of initial weights"}};

  Block(Declare& d, const Attrs& c) : dropout_(c.f64("dropout")), layer_(c.i64("layer")) {
    const std::string_view norm = c.str("norm") == "rms" ? "gestalt.rms_norm" : "gestalt.layer_norm";
    attention_norm_ = d.child({"norm", "attention_norm"}, norm, c);
    attention_ = d.child("attention", "gestalt.attention", c);
    mlp_norm_ = d.child({"norm", "mlp_norm"}, norm, c);
    mlp_ = d.child("mlp", "gestalt.mlp", c);
  }

  Tensor emit(Build& b, Tensor x_th) const {
    x_th = ops::add(x_th, drop(b, b.call(attention_, b.call(attention_norm_, x_th)), 0));
    return ops::add(x_th, drop(b, b.call(mlp_, b.call(mlp_norm_, x_th)), 1));
  }

 private:
  Tensor drop(Build& b, Tensor x_th, int64_t branch) const {
    if (dropout_ == 0 || b.phase() != Phase::kTrain) return x_th;
    // Place 0 is the embedding's; see philox.h.
    return ops::dropout(x_th, b.batch("keys"), b.batch("step_seed"), dropout_, 1 + 2 * layer_ + branch);
  }

  double dropout_;
  int64_t layer_;
  Child attention_norm_, attention_, mlp_norm_, mlp_;
};
GESTALT_COMPONENT(Block)

// Token table and, with positions = "learned", a position table.
class Embedding : public Module {
 public:
  static constexpr std::string_view name = "gestalt.embedding";
  static constexpr ConfigKey keys[] = {
      {.name = "vocab", .type = "i64", .min = "1", .doc = "vocabulary", .required = true},
      {.name = "hidden", .type = "i64", .min = "1", .doc = "width", .required = true},
      {.name = "seq_len", .type = "i64", .min = "1", .doc = "rows of a learned position table", .required = true},
      {.name = "positions", .type = "str", .default_value = "'rotary'", .doc = "learned: add a row by position"},
      {.name = "dropout", .type = "f64", .default_value = "0.0", .min = "0.0", .max = "0.99", .doc = "of the result"},
      {.name = "init_std", .type = "f64", .default_value = "0.02", .min = "0.0", .doc = "deviation of initial weights"}};

  Embedding(Declare& d, const Attrs& c) : learned_(c.str("positions") == "learned"), dropout_(c.f64("dropout")) {
    const Init init = Init::normal(c.f64("init_std"));
    table_ = d.param("weight", {c.i64("vocab"), c.i64("hidden")}, init, {{0, "tp"}});
    if (learned_) position_table_ = d.param("position_weight", {c.i64("seq_len"), c.i64("hidden")}, init);
  }

  Tensor emit(Build& b, Tensor ids_t) const {
    Tensor x_th = ops::embedding(ids_t, b.param(table_));
    if (learned_) x_th = ops::add(x_th, ops::embedding(b.batch("positions"), b.param(position_table_)));
    if (dropout_ == 0 || b.phase() != Phase::kTrain) return x_th;
    return ops::dropout(x_th, b.batch("keys"), b.batch("step_seed"), dropout_, 0);
  }

 private:
  bool learned_;
  double dropout_;
  Param table_, position_table_;
};
GESTALT_COMPONENT(Embedding)

// Logits: x w^T with the embedding's table when it is given, else with its own.
class Head : public Module {
 public:
  static constexpr std::string_view name = "gestalt.head";
  static constexpr ConfigKey keys[] = {
      {.name = "vocab", .type = "i64", .min = "1", .doc = "vocabulary", .required = true},
      {.name = "hidden", .type = "i64", .min = "1", .doc = "width", .required = true},
      {.name = "tied", .type = "bool", .default_value = "true", .doc = "the table comes as second input"},
      {.name = "init_std", .type = "f64", .default_value = "0.02", .min = "0.0", .doc = "deviation of initial weights"}};

  Head(Declare& d, const Attrs& c) : tied_(c.boolean("tied")) {
    if (!tied_) own_ = d.column_linear("", c.i64("hidden"), {c.i64("vocab")}, {.init = Init::normal(c.f64("init_std"))});
  }
  Tensor emit(Build& b, std::span<const Tensor> in) const {
    return tied_ ? ops::linear(in[0], in[1]) : b.call(own_, in[0]);
  }

 private:
  bool tied_;
  Linear own_;
};
GESTALT_COMPONENT(Head)

// Sum over tokens of weight times -log p(label).
class CrossEntropyLoss : public Module {
 public:
  static constexpr std::string_view name = "gestalt.cross_entropy";
  CrossEntropyLoss(Declare&, const Attrs&) {}
  std::vector<Tensor> emit(Build& b, std::span<const Tensor> in) const {
    const Tensor weights_t = b.batch("weights");
    b.loss("lm", ops::cross_entropy(in[0], b.batch("labels"), weights_t).loss_sum, ops::sum(weights_t));
    return {};
  }
};
GESTALT_COMPONENT(CrossEntropyLoss)

}  // namespace gestalt::decoder
