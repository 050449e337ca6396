// One layer of the stack: branches beside the residual, a mixer of tokens and a feed-forward part, or only one of them.
// Shape letters: t tokens, h hidden size.
#include <string>

#include "gestalt/ops.hpp"
#include "gestalt/plugin.hpp"
#include "plugins/decoder/stack_keys.h"

namespace gestalt::decoder {

// x + branch(x) for each branch, where a branch is norm, layer, norm with the norms that norm_placement keeps.
class Block : public Module {
 public:
  static constexpr std::string_view name = "gestalt.block";
  static constexpr ConfigKey kOwn[] = {
      {.name = "layer", .type = "i64", .default_value = "0", .min = "0", .doc = "index in the stack"},
      {.name = "mixer", .type = "str", .default_value = "'attention'", .doc = "slot of the branch that mixes tokens, by default filled with gestalt.NAME; none: no such branch"},
      {.name = "feed_forward", .type = "str", .default_value = "'mlp'", .doc = "slot of the branch that works on each token, likewise"}};
  static constexpr auto keys = with_block_keys(kOwn);

  Block(Declare& d, const Attrs& c)
      : before_(c.str("norm_placement") != "after"),
        after_(c.str("norm_placement") != "before"),
        dropout_(c.f64("dropout")),
        layer_(c.i64("layer")) {
    int64_t place = 0;
    for (std::string_view key : {"mixer", "feed_forward"}) {
      if (const std::string_view slot = c.str(key); slot != "none") branches_.push_back(declare(d, c, slot, place));
      ++place;
    }
    if (branches_.empty())
      throw Error(GESTALT_CONFIG_ERROR, "[mixer] and feed_forward are both none, expected at least one branch");
  }

  Tensor emit(Build& b, Tensor x_th) const {
    for (const Branch& branch : branches_) {
      Tensor y_th = before_ ? b.call(branch.norm, x_th) : x_th;
      y_th = b.call(branch.layer, y_th);
      if (after_) y_th = b.call(branch.post_norm, y_th);
      x_th = ops::add(x_th, drop(b, y_th, branch.place));
    }
    return x_th;
  }

 private:
  struct Branch {
    Child norm, layer, post_norm;
    int64_t place;  // 0: mixer, 1: feed-forward
  };
  Branch declare(Declare& d, const Attrs& c, std::string_view slot_view, int64_t place) const {
    const std::string_view norm = c.str("norm") == "rms" ? "gestalt.rms_norm" : "gestalt.layer_norm";
    const std::string slot(slot_view);
    if (slot.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos || slot.empty())
      throw Error(GESTALT_CONFIG_ERROR,
                  "[mixer, feed_forward] got '" + slot + "', expected the name of a slot in small letters, or none");
    Branch branch{{}, {}, {}, place};
    if (before_) branch.norm = d.child({"norm", slot + "_norm"}, norm, c);
    branch.layer = d.child({slot, slot}, "gestalt." + slot, c);
    if (after_) branch.post_norm = d.child({"norm", slot + "_post_norm"}, norm, c);
    return branch;
  }
  Tensor drop(Build& b, Tensor x_th, int64_t place) const {
    if (dropout_ == 0 || b.phase() != Phase::kTrain) return x_th;
    // Use 0 is the embedding's; see philox.h.
    return ops::dropout(x_th, b.batch("keys"), b.batch("step_seed"), dropout_, 1 + 2 * layer_ + place);
  }

  bool before_, after_;
  double dropout_;
  int64_t layer_;
  std::vector<Branch> branches_;
};
GESTALT_COMPONENT(Block)

}  // namespace gestalt::decoder
