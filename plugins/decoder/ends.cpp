// The two ends of a language model: embedding, head and loss. Shape letters: t tokens, h hidden size, v vocabulary.
#include <string>

#include "gestalt/ops.hpp"
#include "gestalt/plugin.hpp"

namespace gestalt::decoder {

// Token table and, with positions = "learned", a position table.
class Embedding : public Module {
 public:
  static constexpr std::string_view name = "gestalt.embedding";
  static constexpr ConfigKey keys[] = {
      {.name = "vocab", .type = "i64", .min = "1", .doc = "vocabulary", .required = true},
      {.name = "hidden", .type = "i64", .min = "1", .doc = "width", .required = true},
      {.name = "seq_len", .type = "i64", .min = "1", .doc = "rows of a learned position table", .required = true},
      {.name = "positions", .type = "str", .default_value = "'rotary'", .doc = "learned: add a row by position"},
      {.name = "embedding_scale", .type = "f64", .default_value = "1.0", .doc = "factor on the token table's rows"},
      {.name = "dropout", .type = "f64", .default_value = "0.0", .min = "0.0", .max = "0.99", .doc = "of the result"},
      {.name = "init_std", .type = "f64", .default_value = "0.02", .min = "0.0", .doc = "deviation of initial weights"}};

  Embedding(Declare& d, const Attrs& c)
      : learned_(c.str("positions") == "learned"), scale_(c.f64("embedding_scale")), dropout_(c.f64("dropout")) {
    const Init init = Init::normal(c.f64("init_std"));
    table_ = d.param("weight", {c.i64("vocab"), c.i64("hidden")}, init, {{0, "tp"}});
    if (learned_) position_table_ = d.param("position_weight", {c.i64("seq_len"), c.i64("hidden")}, init);
  }

  Tensor emit(Build& b, Tensor ids_t) const {
    Tensor x_th = ops::embedding(ids_t, b.param(table_));
    if (scale_ != 1) x_th = ops::scale(x_th, scale_);
    if (learned_) x_th = ops::add(x_th, ops::embedding(b.batch("positions"), b.param(position_table_)));
    if (dropout_ == 0 || b.phase() != Phase::kTrain) return x_th;
    return ops::dropout(x_th, b.batch("keys"), b.batch("step_seed"), dropout_, 0);
  }

 private:
  bool learned_;
  double scale_, dropout_;
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
      {.name = "logit_softcap", .type = "f64", .default_value = "0.0", .min = "0.0", .doc = "logits stay within +- this; 0: no cap"},
      {.name = "init_std", .type = "f64", .default_value = "0.02", .min = "0.0", .doc = "deviation of initial weights"}};

  Head(Declare& d, const Attrs& c) : tied_(c.boolean("tied")), softcap_(c.f64("logit_softcap")) {
    if (!tied_) own_ = d.column_linear("", c.i64("hidden"), {c.i64("vocab")}, {.init = Init::normal(c.f64("init_std"))});
  }
  Tensor emit(Build& b, std::span<const Tensor> in) const {
    const Tensor logits_tv = tied_ ? ops::linear(in[0], in[1]) : b.call(own_, in[0]);
    return softcap_ == 0 ? logits_tv : ops::softcap(logits_tv, softcap_);
  }

 private:
  bool tied_;
  double softcap_;
  Linear own_;
};
GESTALT_COMPONENT(Head)

// Sum over tokens of weight times -log p(label).
class CrossEntropyLoss : public Module {
 public:
  static constexpr std::string_view name = "gestalt.cross_entropy";
  static constexpr ConfigKey keys[] = {
      {.name = "label_smoothing", .type = "f64", .default_value = "0.0", .min = "0.0", .max = "0.99", .doc = "part of each label that goes to all classes in training"}};

  CrossEntropyLoss(Declare&, const Attrs& c) : smoothing_(c.f64("label_smoothing")) {}
  std::vector<Tensor> emit(Build& b, std::span<const Tensor> in) const {
    const Tensor labels_t = b.batch("labels"), weights_t = b.batch("weights");
    const bool smooth = smoothing_ != 0 && b.phase() == Phase::kTrain;
    const ops::CrossEntropy result = smooth ? ops::cross_entropy(in[0], labels_t, weights_t, smoothing_)
                                            : ops::cross_entropy(in[0], labels_t, weights_t);
    b.loss("lm", result.loss_sum, ops::sum(weights_t));
    return {};
  }

 private:
  double smoothing_;
};
GESTALT_COMPONENT(CrossEntropyLoss)

}  // namespace gestalt::decoder
