#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/elementwise.h"

namespace gestalt::kernels_cpu {
namespace {

// average = decay average + (1 - decay) x, in the type of average.
class EmaUpdate : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.ema_update";

  explicit EmaUpdate(Plan plan) : team_(plan.host()), decay_(plan.attrs().f64("decay")) {
    need_float(plan, plan.in(0), "average");
    need_float(plan, plan.in(1), "x");
    need_same_shape(plan, plan.in(1), "x", plan.in(0));
    if (!(decay_ >= 0 && decay_ <= 1))
      throw InvalidArgument(place(plan) + "decay: got " + std::to_string(decay_) + ", expected 0 to 1");
    run_ = for_compute_type(plan.in(0).dtype(), &EmaUpdate::run_as<float>, &EmaUpdate::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const C decay = static_cast<C>(decay_), rest = static_cast<C>(1 - decay_);
    elementwise<C, 2, 1>(team_, {call.in(0), call.in(1)}, {call.in(0)}, false,
                         [=](const auto& in, const auto& out, int64_t n) {
                           for (int64_t i = 0; i < n; ++i) out[0][i] = decay * in[0][i] + rest * in[1][i];
                         });
  }

  Parallel team_;
  double decay_;
  void (EmaUpdate::*run_)(Call) const;
};
GESTALT_KERNEL(EmaUpdate);

}  // namespace
}  // namespace gestalt::kernels_cpu
