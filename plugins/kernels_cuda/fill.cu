#include "plugins/kernels_cuda/launch.h"

namespace gestalt::kernels_cuda {
namespace {

template <class T>
__global__ void fill(T* y, int64_t n, T value) {
  each_index(n, [&](int64_t i) { y[i] = value; });
}

template <class T>
T number(double value) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __double2bfloat16(value);
  else if constexpr (std::is_same_v<T, __half>)
    return __double2half(value);
  else
    return static_cast<T>(value);
}

class Fill : public CudaKernel {
 public:
  static constexpr std::string_view op = "core.fill";

  explicit Fill(Plan plan) : value_(plan.attrs().f64("value")) {}
  void run(Call call) const {
    const View y = call.out(0);
    const int64_t n = y.numel();
    if (n == 0) return;
    with_any(y.dtype(), [&](auto type) {
      using T = typename decltype(type)::T;
      fill<<<blocks_for(n), kThreads, 0, stream_of(call)>>>(y.data<T>(), n, number<T>(value_));
    });
    check_launch("core.fill");
  }

 private:
  double value_;
};
GESTALT_KERNEL(Fill);

}  // namespace
}  // namespace gestalt::kernels_cuda
