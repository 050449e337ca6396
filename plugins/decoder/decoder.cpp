// A language model of a stack of blocks: embedding, blocks, norm, head, loss. Shape letters: t tokens, h hidden size, v
// vocabulary.
#include <string>

#include "gestalt/ops.hpp"
#include "gestalt/plugin.hpp"
#include "plugins/decoder/pattern.h"
#include "plugins/decoder/stack_keys.h"

namespace gestalt::decoder {

class Decoder : public Module {
 public:
  static constexpr std::string_view name = "gestalt.decoder";
  static constexpr ConfigKey kOwn[] = {
      {.name = "vocab", .type = "i64", .min = "1", .doc = "vocabulary", .required = true},
      {.name = "seq_len", .type = "i64", .min = "1", .doc = "longest sequence, tokens", .required = true},
      {.name = "pattern", .type = "str[]", .default_value = "['block']", .doc = "kinds of layers, repeated over the stack: slots of [model.slots], or letters of *-ME"},
      {.name = "attention_windows", .type = "i64[]", .default_value = "[]", .min = "0", .doc = "window of layer i is entry i mod size, tokens; 0: none"},
      {.name = "tied", .type = "bool", .default_value = "true", .doc = "the head uses the embedding table"},
      {.name = "embedding_scale", .type = "f64", .default_value = "1.0", .doc = "factor on the token table's rows"},
      {.name = "logit_softcap", .type = "f64", .default_value = "0.0", .min = "0.0", .doc = "logits stay within +- this; 0: no cap"},
      {.name = "label_smoothing", .type = "f64", .default_value = "0.0", .min = "0.0", .max = "0.99", .doc = "part of each label that goes to all classes in training"}};
  static constexpr auto keys = with_block_keys(kOwn);

  Decoder(Declare& d, const Attrs& c) : tied_(c.boolean("tied")) {
    embedding_ = d.child("embedding", "gestalt.embedding", c);
    const std::string_view norm = c.str("norm") == "rms" ? "gestalt.rms_norm" : "gestalt.layer_norm";
    const std::vector<LayerKind> pattern = read_pattern(c.str_list("pattern"));
    const auto windows = c.i64_list("attention_windows");
    if (!windows.empty() && c.i64("window") != 0)
      throw Error(GESTALT_CONFIG_ERROR, "[attention_windows] and window are both set, expected one of them");
    for (int64_t i = 0; i < c.i64("layers"); ++i) {
      const auto at = static_cast<size_t>(i);
      const LayerKind& kind = pattern[at % pattern.size()];
      blocks_.push_back(d.child({kind.slot, "layers." + std::to_string(i)}, "gestalt.block", c,
                                {{"layer", i},
                                 {"mixer", kind.mixer},
                                 {"feed_forward", kind.feed_forward},
                                 {"window", windows.empty() ? c.i64("window") : windows[at % windows.size()]}}));
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
    // In generation only some rows are asked for.
    if (b.phase() == Phase::kInfer)
      if (const Tensor rows = b.batch_if_any("output_rows")) x_th = ops::gather_rows(x_th, rows);
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

}  // namespace gestalt::decoder
