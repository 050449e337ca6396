// Attention that scales the queries instead of the scores. Shape letters: t tokens, n query heads, g key/value heads, d
// head size.
#include <cmath>

#include "gestalt/ops.hpp"
#include "gestalt/plugin.hpp"

namespace {

using gestalt::Build;
using gestalt::Declare;
using gestalt::Tensor;

class Attention : public gestalt::Module {
 public:
  static constexpr std::string_view name = "acme.attention";
  static constexpr gestalt::ConfigKey keys[] = {{.name = "attention_scale",
                                                 .type = "f64",
                                                 .default_value = "0.0",
                                                 .min = "0.0",
                                                 .doc = "factor on the queries; 0: 1 / sqrt(head size)"},
                                                {.name = "attention_softcap",
                                                 .type = "f64",
                                                 .default_value = "0.0",
                                                 .min = "0.0",
                                                 .doc = "scores stay within +- this; 0: no cap"},
                                                {.name = "window",
                                                 .type = "i64",
                                                 .default_value = "0",
                                                 .min = "0",
                                                 .doc = "a token sees itself and the window - 1 before it; 0: all"}};

  Attention(Declare&, const gestalt::Attrs& c) : scale_(c.f64("attention_scale")) {
    options_.scale = 1;
    options_.softcap = c.f64("attention_softcap");
    options_.window = c.i64("window");
  }
  Tensor emit(Build& b, Tensor q_tnd, Tensor k_tgd, Tensor v_tgd) const {
    const double factor = scale_ > 0 ? scale_ : 1 / std::sqrt(static_cast<double>(q_tnd.dim(2)));
    return gestalt::ops::attention(gestalt::ops::scale(q_tnd, factor), k_tgd, v_tgd, b.batch("seq_starts"), options_);
  }

 private:
  double scale_;
  gestalt::ops::AttentionOptions options_;
};
GESTALT_COMPONENT(Attention)

}  // namespace
