#include "gestalt/abi/optimizer.h"
#include "plugins/kernels_cpu/flat_update.h"

namespace gestalt::kernels_cpu {
namespace {

// With g = clip grad: param -= lr lr_scale (sign(beta1 m + (1 - beta1) g) + decay param), then m = beta2 m + (1 -
// beta2) g (Chen and others, "Symbolic discovery of optimization algorithms", 2023). A negative clip changes nothing.
class LionUpdate : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.lion_update";

  explicit LionUpdate(Plan plan)
      : team_(plan.host()), beta1_(plan.attrs().f64("beta1", 0.9)), beta2_(plan.attrs().f64("beta2", 0.99)) {
    need_update(plan, kSegments);
    need_vector(plan, kMoment, "m", plan.in(kParam));
    run_ = for_compute_type(plan.in(kParam).dtype(), &LionUpdate::run_as<float>, &LionUpdate::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  static constexpr uint64_t kMoment = 3, kSegments = 4, kScalars = 6, kClip = 7;

  template <class C>
  void run_as(Call call) const {
    const double clip = scalar(call.in(kClip));
    if (clip < 0) return;
    const double lr = scalar(call.in(kScalars), GESTALT_SCALAR_LR);
    const C beta1 = static_cast<C>(beta1_), beta2 = static_cast<C>(beta2_);
    const C rest1 = static_cast<C>(1 - beta1_), rest2 = static_cast<C>(1 - beta2_), factor = static_cast<C>(clip);
    update_segments<C, 1>(team_, call, {kMoment}, kSegments,
                          [&](const UpdateBlock<C>& block, double decay, double lr_scale) {
                            const C rate = static_cast<C>(lr * lr_scale), shrink = static_cast<C>(decay);
                            C* m = block.state[0];
                            for (int64_t i = 0; i < block.n; ++i) {
                              const C g = factor * block.grad[i], mixed = beta1 * m[i] + rest1 * g;
                              const C sign = mixed > C(0) ? C(1) : mixed < C(0) ? C(-1) : C(0);
                              block.weight[i] -= rate * (sign + shrink * block.weight[i]);
                              m[i] = beta2 * m[i] + rest2 * g;
                            }
                          });
  }

  Parallel team_;
  double beta1_, beta2_;
  void (LionUpdate::*run_)(Call) const;
};
GESTALT_KERNEL(LionUpdate);

}  // namespace
}  // namespace gestalt::kernels_cpu
