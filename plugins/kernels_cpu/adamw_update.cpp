#include <cmath>

#include "gestalt/abi/optimizer.h"
#include "plugins/kernels_cpu/flat_update.h"
#include "plugins/kernels_cpu/loops.h"

namespace gestalt::kernels_cpu {
namespace {

// With g = clip grad: m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
// param -= lr lr_scale (m' / (sqrt(v') + eps) + decay param), where m' = m / (1 - beta1^step) and v' likewise.
// A negative clip means a gradient that is not finite: nothing changes.
class AdamwUpdate : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.adamw_update";

  explicit AdamwUpdate(Plan plan)
      : team_(plan.host()),
        beta1_(plan.attrs().f64("beta1")),
        beta2_(plan.attrs().f64("beta2")),
        eps_(plan.attrs().f64("eps")) {
    need_update(plan, kSegments);
    need_vector(plan, kM, "m", plan.in(kParam));
    need_vector(plan, kV, "v", plan.in(kParam));
    run_ = for_compute_type(plan.in(kParam).dtype(), &AdamwUpdate::run_as<float>, &AdamwUpdate::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  static constexpr uint64_t kM = 3, kV = 4, kSegments = 5, kScalars = 7, kClip = 8;

  template <class C>
  void run_as(Call call) const {
    const double clip = scalar(call.in(kClip));
    if (clip < 0) return;
    const double lr = scalar(call.in(kScalars), GESTALT_SCALAR_LR),
                 step = scalar(call.in(kScalars), GESTALT_SCALAR_STEP);
    const double correction1 = 1 - std::pow(beta1_, step), correction2 = 1 - std::pow(beta2_, step);
    const auto adamw = loops<C>().adamw;
    update_segments<C, 2>(team_, call, {kM, kV}, kSegments,
                          [&](const UpdateBlock<C>& block, double decay, double lr_scale) {
                            const AdamCoefficients<C> c{static_cast<C>(clip),
                                                        static_cast<C>(beta1_),
                                                        static_cast<C>(beta2_),
                                                        static_cast<C>(1 - beta1_),
                                                        static_cast<C>(1 - beta2_),
                                                        static_cast<C>(lr * lr_scale / correction1),
                                                        static_cast<C>(1 / std::sqrt(correction2)),
                                                        static_cast<C>(eps_),
                                                        static_cast<C>(lr * lr_scale * decay)};
                            adamw(c, block.grad, block.weight, block.state[0], block.state[1], block.n);
                          });
  }

  Parallel team_;
  double beta1_, beta2_, eps_;
  void (AdamwUpdate::*run_)(Call) const;
};
GESTALT_KERNEL(AdamwUpdate);

}  // namespace
}  // namespace gestalt::kernels_cpu
