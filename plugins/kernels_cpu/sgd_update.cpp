#include "gestalt/abi/optimizer.h"
#include "plugins/kernels_cpu/flat_update.h"
#include "plugins/kernels_cpu/loops.h"

namespace gestalt::kernels_cpu {
namespace {

// With g = clip grad + decay param and, where there is momentum, buf = momentum buf + g:
// param -= lr lr_scale d, where d is g without momentum, buf with it, g + momentum buf with nesterov.
// A negative clip means a gradient that is not finite: nothing changes.
class SgdUpdate : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.sgd_update";

  explicit SgdUpdate(Plan plan)
      : team_(plan.host()), momentum_(plan.attrs().f64("momentum")), nesterov_(plan.attrs().boolean("nesterov")) {
    need_update(plan, kSegments);
    if (plan.has_in(kMomentum)) need_vector(plan, kMomentum, "momentum", plan.in(kParam));
    run_ = for_compute_type(plan.in(kParam).dtype(), &SgdUpdate::run_as<float>, &SgdUpdate::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  static constexpr uint64_t kMomentum = 3, kSegments = 4, kScalars = 6, kClip = 7;

  template <class C>
  void run_as(Call call) const {
    const double clip = scalar(call.in(kClip));
    if (clip < 0) return;
    const double lr = scalar(call.in(kScalars), GESTALT_SCALAR_LR);
    const auto sgd = loops<C>().sgd;
    update_segments<C, 1>(team_, call, {kMomentum}, kSegments,
                          [&](const UpdateBlock<C>& block, double decay, double lr_scale) {
                            sgd(static_cast<C>(clip), static_cast<C>(momentum_), static_cast<C>(lr * lr_scale),
                                static_cast<C>(decay), nesterov_, block.grad, block.weight, block.state[0], block.n);
                          });
  }

  Parallel team_;
  double momentum_;
  bool nesterov_;
  void (SgdUpdate::*run_)(Call) const;
};
GESTALT_KERNEL(SgdUpdate);

}  // namespace
}  // namespace gestalt::kernels_cpu
