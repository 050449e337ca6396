#include "plugins/kernels_cuda/element_kernel.h"
#include "plugins/kernels_cuda/loop.cuh"

namespace gestalt::kernels_cuda {
namespace {

// y[i] = start + i step
__global__ void __launch_bounds__(kThreads) arange(const Side y, int64_t n, int64_t stride, double start, double step) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) store_one<double>(y, i * stride, start + static_cast<double>(i) * step);
}

class Arange : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.arange";

  explicit Arange(Plan plan) : start_(plan.attrs().f64("start", 0)), step_(plan.attrs().f64("step", 1)) {
    need_dtype(plan, plan.out(0), "y", {kF32, kF64, kBF16, kF16, kI32, kI64});
    need_ndim(plan, plan.out(0), "y", 1);
  }
  void run(Call call) const {
    const View y = call.out(0);
    const int64_t n = y.dim(0);
    if (n == 0) return;
    arange<<<blocks_for(n), kThreads, 0, stream_of(call)>>>(side_of(y), n, y.stride(0), start_, step_);
    check_launch(op);
  }

 private:
  double start_, step_;
};
GESTALT_KERNEL(Arange);

// y[..., index[...]] = 1, 0 elsewhere. An index that is none leaves a row of zeros.
__global__ void __launch_bounds__(kThreads)
    one_hot(const __grid_constant__ Loop<2> rows, const Side index, const Side y, int64_t classes, int64_t step) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= rows.numel * classes) return;
  const int64_t row = i / classes, c = i % classes;
  int64_t at[2] = {0, 0};
  rows.locate_row(row, rows.ndim, at);
  store_one<double>(y, at[1] + c * step, load_one<int64_t>(index, at[0]) == c ? 1 : 0);
}

class OneHot : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.one_hot";

  explicit OneHot(Plan plan) {
    const View index = plan.in(0), y = plan.out(0);
    need_index(plan, index, "index");
    need_any(plan, y, "y");
    need_ndim(plan, y, "y", index.ndim() + 1);
    for (int d = 0; d < index.ndim(); ++d) need_dim(plan, y, "y", d, index.dim(d));
  }
  void run(Call call) const {
    const View index = call.in(0), y = call.out(0);
    Loop<2> rows;
    for (int d = 0; d < index.ndim(); ++d) rows.append(index.dim(d), {index.stride(d), y.stride(d)});
    rows.close();
    if (y.numel() == 0) return;
    one_hot<<<blocks_for(y.numel()), kThreads, 0, stream_of(call)>>>(rows, side_of(index), side_of(y), y.dim(-1),
                                                                     y.stride(-1));
    check_launch(op);
  }
};
GESTALT_KERNEL(OneHot);

}  // namespace
}  // namespace gestalt::kernels_cuda
