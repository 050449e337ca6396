#include "plugins/kernels_cpu/copy.h"
#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/elementwise.h"

namespace gestalt::kernels_cpu {
namespace {

// The attribute `dim`, counted from the front.
int dim_of(const Plan& plan, int ndim) {
  const int64_t dim = plan.attrs().i64("dim");
  if (dim < -ndim || dim >= ndim)
    throw InvalidArgument(place(plan) + "dim: out of range, got " + std::to_string(dim) + ", expected -" +
                          std::to_string(ndim) + " to " + std::to_string(ndim - 1));
  return static_cast<int>(dim < 0 ? dim + ndim : dim);
}

class Concat : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.concat";

  explicit Concat(Plan plan) : team_(plan.host()), num_in_(plan.num_in()), dim_(dim_of(plan, plan.out(0).ndim())) {
    for (uint64_t i = 0; i < num_in_; ++i) {
      need_dtype(plan, plan.in(i), "x", {plan.out(0).dtype()});
      need_ndim(plan, plan.in(i), "x", plan.out(0).ndim());
    }
  }
  void run(Call call) const {
    int64_t begin = 0;
    for (uint64_t i = 0; i < num_in_; ++i) {
      const int64_t size = call.in(i).dim(dim_);
      copy_elements(team_, call.in(i), Part(call.out(0), dim_, begin, size).view());
      begin += size;
    }
  }

 private:
  Parallel team_;
  uint64_t num_in_;
  int dim_;
};
GESTALT_KERNEL(Concat);

// Zeros before and after x in one dimension.
class Pad : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.pad";

  explicit Pad(Plan plan)
      : team_(plan.host()), dim_(dim_of(plan, plan.in(0).ndim())), before_(plan.attrs().i64("before")) {
    need_dtype(plan, plan.in(0), "x", {kF32, kF64, kBF16, kF16, kI32, kI64, kU8, kBool});
    need_dtype(plan, plan.out(0), "y", {plan.in(0).dtype()});
    need_dim(plan, plan.out(0), "y", dim_, plan.in(0).dim(dim_) + before_ + plan.attrs().i64("after"));
  }
  void run(Call call) const {
    const View x = call.in(0), y = call.out(0);
    const int64_t end = before_ + x.dim(dim_);
    zero(Part(y, dim_, 0, before_).view());
    copy_elements(team_, x, Part(y, dim_, before_, x.dim(dim_)).view());
    zero(Part(y, dim_, end, y.dim(dim_) - end).view());
  }

 private:
  void zero(View view) const {
    elementwise<int64_t, 0, 1>(team_, {}, {view}, false, [](const auto&, const auto& out, int64_t n) {
      std::fill(out[0], out[0] + n, int64_t{0});
    });
  }

  Parallel team_;
  int dim_;
  int64_t before_;
};
GESTALT_KERNEL(Pad);

}  // namespace
}  // namespace gestalt::kernels_cpu
