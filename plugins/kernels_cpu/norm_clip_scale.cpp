#include <cmath>

#include "gestalt/abi/optimizer.h"
#include "plugins/kernels_cpu/flat_update.h"

namespace gestalt::kernels_cpu {
namespace {

// The gradient is a sum over tokens: norm = sqrt(sum_squares) inv_tokens is that of the mean, and clip is the factor
// that turns the sum into the clipped mean: min(1, max_norm / (norm + 1e-6)) inv_tokens, without the first factor when
// max_norm is 0. clip = -1 tells the update to skip when the norm is not finite.
class NormClipScale : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.norm_clip_scale";

  explicit NormClipScale(Plan plan) : max_norm_(plan.attrs().f64("max_norm")) {
    need_float(plan, plan.in(0), "sum_squares");
    need_ndim(plan, plan.in(0), "sum_squares", 0);
    need_float(plan, plan.in(1), "scalars");
    need_ndim(plan, plan.in(1), "scalars", 1);
    if (!(max_norm_ >= 0))
      throw InvalidArgument(place(plan) + "max_norm: got " + std::to_string(max_norm_) + ", expected 0 or more");
  }
  void run(Call call) const {
    const double inv_tokens = scalar(call.in(1), GESTALT_SCALAR_INV_TOKENS);
    const double norm = std::sqrt(scalar(call.in(0))) * inv_tokens;
    const double factor = max_norm_ > 0 ? std::min(1.0, max_norm_ / (norm + 1e-6)) : 1.0;
    Out<double>(call.out(0)).one(0, std::isfinite(norm) ? factor * inv_tokens : -1.0);
    Out<double>(call.out(1)).one(0, norm);
  }

 private:
  double max_norm_;
};
GESTALT_KERNEL(NormClipScale);

}  // namespace
}  // namespace gestalt::kernels_cpu
