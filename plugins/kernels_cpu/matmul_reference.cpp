#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/matmul_shape.h"

// The plain twins of matmul.cpp, backend gestalt.cpu_ref: three loops, sums in double.
namespace gestalt::kernels_cpu {
namespace {

void multiply_plainly(const Parallel& team, const Product<double>& p, View a, View b, View y, const In<double>* bias,
                      int64_t bias_stride) {
  const auto offset = [](View x, const void* at) {
    return (static_cast<const char*>(at) - x.data<const char>()) / size_of(x.dtype());
  };
  const In<double> left(a), right(b);
  const Out<double> out(y, p.accumulate);
  const int64_t a_at = offset(a, p.a.data), b_at = offset(b, p.b.data), y_at = offset(y, p.y);
  team(p.m, row_grain(p.n * p.k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = bias != nullptr ? bias->one(j * bias_stride) : 0;
        for (int64_t k = 0; k < p.k; ++k)
          sum += left.one(a_at + i * p.a.row + k * p.a.col) * right.one(b_at + k * p.b.row + j * p.b.col);
        out.one(y_at + i * p.y_row + j * p.y_col, sum);
      }
    }
  });
}

class MatmulReference : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.matmul", backend = "gestalt.cpu_ref";
  static constexpr uint64_t flags = CpuKernel::accumulating;

  explicit MatmulReference(Plan plan) : team_(plan.host()), shape_(plan) {}
  void run(Call call) const {
    const int64_t batch = shape_.batch(call.in(0));
    for (int64_t i = 0; i < batch; ++i)
      multiply_plainly(team_, shape_.product<double>(call, i), call.in(0), call.in(1), call.out(0), nullptr, 0);
  }

 private:
  Parallel team_;
  MatmulShape shape_;
};
GESTALT_KERNEL(MatmulReference);

class LinearReference : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.linear", backend = "gestalt.cpu_ref";

  explicit LinearReference(Plan plan) : team_(plan.host()), has_bias_(plan.has_in(2)) { need_linear(plan); }
  void run(Call call) const {
    const View x = call.in(0), w = call.in(1), y = call.out(0);
    const Product<double> product{.m = x.dim(0),
                                  .n = w.dim(0),
                                  .k = x.dim(1),
                                  .a = {x.data<void>(), x.dtype(), x.stride(0), x.stride(1)},
                                  .b = {w.data<void>(), w.dtype(), w.stride(1), w.stride(0)},
                                  .y = y.data<void>(),
                                  .y_dtype = y.dtype(),
                                  .y_row = y.stride(0),
                                  .y_col = y.stride(1)};
    if (has_bias_) {
      const In<double> bias(call.in(2));
      multiply_plainly(team_, product, x, w, y, &bias, call.in(2).stride(0));
    } else {
      multiply_plainly(team_, product, x, w, y, nullptr, 0);
    }
  }

 private:
  Parallel team_;
  bool has_bias_;
};
GESTALT_KERNEL(LinearReference);

}  // namespace
}  // namespace gestalt::kernels_cpu
