#include <algorithm>

#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"

namespace gestalt::kernels_cpu {
namespace {

// A step whose gradient is not finite multiplies loss_scale by backoff and restarts the count of good steps; `interval`
// good steps in a row multiply it by growth. It stays within [min, max].
class LossScaleUpdate : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.loss_scale_update";

  explicit LossScaleUpdate(Plan plan)
      : growth_(plan.attrs().f64("growth", 2)),
        backoff_(plan.attrs().f64("backoff", 0.5)),
        min_(plan.attrs().f64("min", 1)),
        max_(plan.attrs().f64("max", 16777216)),
        interval_(plan.attrs().i64("interval", 2000)) {
    need_dtype(plan, plan.in(0), "loss_scale", {kF32});
    need_dtype(plan, plan.in(1), "good_steps", {kI32});
    need_dtype(plan, plan.in(2), "finite", {kBool});
    need_ndim(plan, plan.in(0), "loss_scale", 0);
    need_ndim(plan, plan.in(1), "good_steps", 0);
    need_ndim(plan, plan.in(2), "finite", 0);
  }
  void run(Call call) const {
    double scale = In<double>(call.in(0)).one(0);
    int64_t good = In<int64_t>(call.in(1)).one(0) + 1;
    if (In<int64_t>(call.in(2)).one(0) == 0) {
      scale *= backoff_;
      good = 0;
    } else if (good >= interval_) {
      scale *= growth_;
      good = 0;
    }
    Out<double>(call.in(0)).one(0, std::min(std::max(scale, min_), max_));
    Out<int64_t>(call.in(1)).one(0, good);
  }

 private:
  double growth_, backoff_, min_, max_;
  int64_t interval_;
};
GESTALT_KERNEL(LossScaleUpdate);

}  // namespace
}  // namespace gestalt::kernels_cpu
