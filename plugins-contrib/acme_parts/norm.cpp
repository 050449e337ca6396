// An RMS norm of elementary ops. Shape letters: t tokens, h hidden size.
#include "gestalt/ops.hpp"
#include "gestalt/plugin.hpp"

namespace {

namespace ops = gestalt::ops;
using gestalt::Build;
using gestalt::Declare;
using gestalt::Tensor;

class RmsNorm : public gestalt::Module {
 public:
  static constexpr std::string_view name = "acme.rms_norm";
  static constexpr gestalt::ConfigKey keys[] = {
      {.name = "hidden", .type = "i64", .min = "1", .doc = "width", .required = true},
      {.name = "norm_eps", .type = "f64", .default_value = "1e-5", .min = "0.0", .doc = "added to the mean square"}};

  RmsNorm(Declare& d, const gestalt::Attrs& c)
      : eps_(c.f64("norm_eps")), weight_(d.param("weight", {c.i64("hidden")}, gestalt::Init::constant(1))) {}

  Tensor emit(Build& b, Tensor x_th) const {
    const Tensor mean_t1 = ops::mean(ops::mul(x_th, x_th), {1}, true);
    const Tensor scale_t1 = ops::rsqrt(ops::add(mean_t1, ops::fill(b, {}, mean_t1.dtype(), eps_)));
    const Tensor scale_th = ops::broadcast(scale_t1, {x_th.dim(0), x_th.dim(1)});
    return ops::mul(ops::mul(x_th, scale_th), b.param(weight_));
  }

 private:
  double eps_;
  gestalt::Param weight_;
};
GESTALT_COMPONENT(RmsNorm)

}  // namespace
