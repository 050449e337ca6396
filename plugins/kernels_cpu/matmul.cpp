#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/gemm.h"
#include "plugins/kernels_cpu/loops.h"
#include "plugins/kernels_cpu/matmul_shape.h"
#include "plugins/kernels_cpu/strided.h"

namespace gestalt::kernels_cpu {
namespace {

// Few rows are not worth packing b: each element is one dot product along contiguous rows of a and columns of b. The
// order of its sum differs from the packed form, so this is not for a plan that must be batch-invariant.
constexpr int64_t kFewRows = 3;

template <class C>
bool multiply_few(const Parallel& team, const Product<C>& p) {
  if (p.m > kFewRows || p.a.dtype != compute_dtype<C>() || p.b.dtype != compute_dtype<C>() ||
      p.y_dtype != compute_dtype<C>() || p.a.col != 1 || p.b.row != 1)
    return false;
  const auto dot = loops<C>().dot;
  team(p.n, row_grain(p.k), [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      for (int64_t i = 0; i < p.m; ++i) {
        C value =
            dot(static_cast<const C*>(p.a.data) + i * p.a.row, static_cast<const C*>(p.b.data) + j * p.b.col, p.k);
        if (p.bias != nullptr) value += p.bias[j];
        C* to = static_cast<C*>(p.y) + i * p.y_row + j * p.y_col;
        *to = p.accumulate ? *to + value : value;
      }
    }
  });
  return true;
}

class Matmul : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.matmul";
  static constexpr uint64_t flags = CpuKernel::accumulating;

  explicit Matmul(Plan plan)
      : slots_(plan.host()), shape_(plan), few_((plan.require() & GESTALT_REQUIRE_BATCH_INVARIANT) == 0) {
    const bool is_f64 = plan.in(0).is(kF64);
    scratch_ = is_f64 ? multiply_scratch<double>(shape_.m(plan.in(0)), shape_.n(plan.in(1)), shape_.k(plan.in(0)))
                      : multiply_scratch<float>(shape_.m(plan.in(0)), shape_.n(plan.in(1)), shape_.k(plan.in(0)));
    const int64_t used = std::min(slots_.count(), std::max<int64_t>(1, shape_.batch(plan.in(0))));
    plan.workspace(static_cast<uint64_t>(used * scratch_));
    run_ = is_f64 ? &Matmul::run_as<double> : &Matmul::run_as<float>;
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  // Many small products: one thread each. Few: all threads on one after the other.
  template <class C>
  void run_as(Call call) const {
    const int64_t batch = shape_.batch(call.in(0));
    char* scratch = static_cast<char*>(call.workspace());
    if (batch < slots_.count() || batch == 1) {
      for (int64_t i = 0; i < batch; ++i) one<C>(call, i, &slots_.team(), scratch);
      return;
    }
    slots_(batch, 1, [&](int64_t slot, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) one<C>(call, i, nullptr, scratch + slot * scratch_);
    });
  }

  template <class C>
  void one(Call call, int64_t i, const Parallel* team, void* scratch) const {
    const Product<C> product = shape_.product<C>(call, i);
    if (few_ && team != nullptr && multiply_few(*team, product)) return;
    multiply(team, product, scratch);
  }

  Slots slots_;
  MatmulShape shape_;
  bool few_;
  int64_t scratch_;
  void (Matmul::*run_)(Call) const;
};
GESTALT_KERNEL(Matmul);

// y[t, o] = x[t, i] w[o, i]^T + b[o].
class Linear : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.linear";

  explicit Linear(Plan plan)
      : team_(plan.host()), has_bias_(plan.has_in(2)), few_((plan.require() & GESTALT_REQUIRE_BATCH_INVARIANT) == 0) {
    need_linear(plan);
    const View x = plan.in(0), w = plan.in(1);
    const bool is_f64 = x.is(kF64);
    scratch_ = is_f64 ? multiply_scratch<double>(x.dim(0), w.dim(0), x.dim(1))
                      : multiply_scratch<float>(x.dim(0), w.dim(0), x.dim(1));
    plan.workspace(static_cast<uint64_t>(scratch_ + w.dim(0) * (is_f64 ? 8 : 4)));
    run_ = is_f64 ? &Linear::run_as<double> : &Linear::run_as<float>;
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), w = call.in(1), y = call.out(0);
    char* scratch = static_cast<char*>(call.workspace());
    Product<C> product{.m = x.dim(0),
                       .n = w.dim(0),
                       .k = x.dim(1),
                       .a = {x.data<void>(), x.dtype(), x.stride(0), x.stride(1)},
                       .b = {w.data<void>(), w.dtype(), w.stride(1), w.stride(0)},
                       .y = y.data<void>(),
                       .y_dtype = y.dtype(),
                       .y_row = y.stride(0),
                       .y_col = y.stride(1)};
    if (has_bias_) {
      const View b = call.in(2);
      product.bias = In<C>(b).run(0, b.stride(0), b.dim(0), reinterpret_cast<C*>(scratch + scratch_));
    }
    if (few_ && multiply_few(team_, product)) return;
    multiply(&team_, product, scratch);
  }

  Parallel team_;
  bool has_bias_, few_;
  int64_t scratch_;
  void (Linear::*run_)(Call) const;
};
GESTALT_KERNEL(Linear);

}  // namespace
}  // namespace gestalt::kernels_cpu
