// One layer of the stack: attention and an MLP, each a branch beside the residual. Shape letters: t tokens, h hidden
// size.
#include <string>

#include "gestalt/ops.hpp"
#include "gestalt/plugin.hpp"
#include "plugins/decoder/stack_keys.h"

namespace gestalt::decoder {

// x + branch(x) for attention, then for the MLP, where a branch is norm, layer, norm with the norms that
// norm_placement keeps.
class Block : public Module {
 public:
  static constexpr std::string_view name = "gestalt.block";
  static constexpr ConfigKey kOwn[] = {
      {.name = "layer", .type = "i64", .default_value = "0", .min = "0", .doc = "index in the stack"}};
  static constexpr auto keys = with_block_keys(kOwn);

  Block(Declare& d, const Attrs& c)
      : before_(c.str("norm_placement") != "after"),
        after_(c.str("norm_placement") != "before"),
        dropout_(c.f64("dropout")),
        layer_(c.i64("layer")) {
    const std::string_view norm = c.str("norm") == "rms" ? "gestalt.rms_norm" : "gestalt.layer_norm";
    const auto windows = c.i64_list("attention_windows");
    const int64_t window = windows.empty() ? 0 : windows[static_cast<size_t>(layer_) % windows.size()];
    if (before_) attention_norm_ = d.child({"norm", "attention_norm"}, norm, c);
    attention_ = d.child("attention", "gestalt.attention", c, {{"window", window}});
    if (after_) attention_post_norm_ = d.child({"norm", "attention_post_norm"}, norm, c);
    if (before_) mlp_norm_ = d.child({"norm", "mlp_norm"}, norm, c);
    mlp_ = d.child("mlp", "gestalt.mlp", c);
    if (after_) mlp_post_norm_ = d.child({"norm", "mlp_post_norm"}, norm, c);
  }

  Tensor emit(Build& b, Tensor x_th) const {
    x_th = ops::add(x_th, drop(b, branch(b, attention_norm_, attention_, attention_post_norm_, x_th), 0));
    return ops::add(x_th, drop(b, branch(b, mlp_norm_, mlp_, mlp_post_norm_, x_th), 1));
  }

 private:
  Tensor branch(Build& b, Child norm, Child layer, Child post_norm, Tensor x_th) const {
    if (before_) x_th = b.call(norm, x_th);
    x_th = b.call(layer, x_th);
    return after_ ? b.call(post_norm, x_th) : x_th;
  }
  Tensor drop(Build& b, Tensor x_th, int64_t branch) const {
    if (dropout_ == 0 || b.phase() != Phase::kTrain) return x_th;
    // Place 0 is the embedding's; see philox.h.
    return ops::dropout(x_th, b.batch("keys"), b.batch("step_seed"), dropout_, 1 + 2 * layer_ + branch);
  }

  bool before_, after_;
  double dropout_;
  int64_t layer_;
  Child attention_norm_, attention_, attention_post_norm_, mlp_norm_, mlp_, mlp_post_norm_;
};
GESTALT_COMPONENT(Block)

}  // namespace gestalt::decoder
