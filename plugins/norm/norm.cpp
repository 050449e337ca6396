// Normalisation layers over the hidden dimension. Shape letters: t tokens, h hidden size.
#include "gestalt/ops.hpp"
#include "gestalt/plugin.hpp"

namespace gestalt::norm {

class RmsNorm : public Module {
 public:
  static constexpr std::string_view name = "gestalt.rms_norm";
  static constexpr ConfigKey keys[] = {
      {.name = "hidden", .type = "i64", .min = "1", .doc = "width", .required = true},
      {.name = "norm_eps", .type = "f64", .default_value = "1e-5", .min = "0.0", .doc = "added to the mean square"},
      {.name = "norm_offset", .type = "f64", .default_value = "0.0", .doc = "added to the weights, which start at 1 - offset"}};

  RmsNorm(Declare& d, const Attrs& c)
      : eps_(c.f64("norm_eps")),
        offset_(c.f64("norm_offset")),
        weight_(d.param("weight", {c.i64("hidden")}, Init::constant(1 - offset_))) {}
  Tensor emit(Build& b, Tensor x_th) const {
    return offset_ == 0 ? ops::rms_norm(x_th, b.param(weight_), eps_) : ops::rms_norm(x_th, b.param(weight_), eps_, offset_);
  }

 private:
  double eps_, offset_;
  Param weight_;
};
GESTALT_COMPONENT(RmsNorm)

class LayerNorm : public Module {
 public:
  static constexpr std::string_view name = "gestalt.layer_norm";
  static constexpr ConfigKey keys[] = {
      {.name = "hidden", .type = "i64", .min = "1", .doc = "width", .required = true},
      {.name = "norm_eps", .type = "f64", .default_value = "1e-5", .min = "0.0", .doc = "added to the variance"},
      {.name = "norm_bias", .type = "bool", .default_value = "true", .doc = "add a bias"}};

  LayerNorm(Declare& d, const Attrs& c) : eps_(c.f64("norm_eps")), norm_(d.norm("", c.i64("hidden"), c.boolean("norm_bias"))) {}
  Tensor emit(Build& b, Tensor x_th) const {
    return ops::layer_norm(x_th, b.param(norm_.weight), norm_.has_bias ? b.param(norm_.bias) : Tensor(), eps_);
  }

 private:
  double eps_;
  Norm norm_;
};
GESTALT_COMPONENT(LayerNorm)

}  // namespace gestalt::norm
