#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/elementwise.h"

namespace gestalt::kernels_cpu {
namespace {

// y[i] = start + i step
class Arange : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.arange";

  explicit Arange(Plan plan) : start_(plan.attrs().f64("start", 0)), step_(plan.attrs().f64("step", 1)) {
    need_dtype(plan, plan.out(0), "y", {kF32, kF64, kBF16, kF16, kI32, kI64});
    need_ndim(plan, plan.out(0), "y", 1);
  }
  void run(Call call) const {
    const View y = call.out(0);
    const Out<double> out(y);
    for (int64_t i = 0; i < y.dim(0); ++i) out.one(i * y.stride(0), start_ + static_cast<double>(i) * step_);
  }

 private:
  double start_, step_;
};
GESTALT_KERNEL(Arange);

// y[..., index[...]] = 1, 0 elsewhere.
class OneHot : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.one_hot";

  explicit OneHot(Plan plan) : team_(plan.host()) {
    const View index = plan.in(0), y = plan.out(0);
    need_index(plan, index, "index");
    need_dtype(plan, y, "y", {kF32, kF64, kBF16, kF16, kI32, kI64, kU8, kBool});
    need_ndim(plan, y, "y", index.ndim() + 1);
    for (int d = 0; d < index.ndim(); ++d) need_dim(plan, y, "y", d, index.dim(d));
  }
  void run(Call call) const {
    const View index = call.in(0), y = call.out(0);
    const int64_t classes = y.dim(-1), rows = index.numel();
    for (int64_t row = 0; row < rows; ++row)
      if (const int64_t at = In<int64_t>(index).one(offset_of(index, index.ndim(), row)); at < 0 || at >= classes)
        throw InvalidArgument("[core.one_hot] index: out of range, got " + std::to_string(at) + " at element " +
                              std::to_string(row) + ", expected 0 to " + std::to_string(classes - 1));
    team_(rows, row_grain(classes), [&](int64_t begin, int64_t end) {
      const Out<double> out(y);
      for (int64_t row = begin; row < end; ++row) {
        const int64_t to = offset_of(y, index.ndim(), row);
        const int64_t at = In<int64_t>(index).one(offset_of(index, index.ndim(), row));
        for (int64_t i = 0; i < classes; ++i) out.one(to + i * y.stride(-1), i == at ? 1 : 0);
      }
    });
  }

 private:
  Parallel team_;
};
GESTALT_KERNEL(OneHot);

}  // namespace
}  // namespace gestalt::kernels_cpu
