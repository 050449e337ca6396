#include "plugins/kernels_cpu/copy.h"

#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/elementwise.h"

namespace gestalt::kernels_cpu {
namespace {

struct CopyOp {
  static constexpr std::string_view name = "core.copy";
};
struct CastOp {
  static constexpr std::string_view name = "core.cast";
};

// Bit by bit between equal types. Else, or where y is added to, through the narrowest type that holds both ends
// exactly: int64_t from integers, float between 32 bits and fewer.
template <class Op>
class Move : public CpuKernel {
 public:
  static constexpr std::string_view op = Op::name;
  static constexpr uint64_t flags = CpuKernel::accumulating;

  explicit Move(Plan plan) : team_(plan.host()) {
    const View x = plan.in(0), y = plan.out(0);
    need_dtype(plan, x, "x", {kF32, kF64, kBF16, kF16, kI32, kI64, kU8, kBool});
    need_dtype(plan, y, "y", {kF32, kF64, kBF16, kF16, kI32, kI64, kU8, kBool});
    need_same_shape(plan, y, "y", x);
    if (!is_floating(x.dtype()) && !(is_floating(y.dtype()) && plan.may_accumulate(0)))
      run_ = &Move::run_as<int64_t>;
    else if (!is_floating(x.dtype()) || x.is(kF64) || y.is(kF64) || !is_floating(y.dtype()))
      run_ = &Move::run_as<double>;
    else
      run_ = &Move::run_as<float>;
  }
  void run(Call call) const {
    if (call.in(0).is(call.out(0).dtype()) && !call.accumulate(0))
      copy_elements(team_, call.in(0), call.out(0));
    else
      (this->*run_)(call);
  }

 private:
  template <class C>
  void run_as(Call call) const {
    elementwise<C, 1, 1>(team_, {call.in(0)}, {call.out(0)}, call.accumulate(0),
                         [](const auto& in, const auto& out, int64_t n) { std::copy(in[0], in[0] + n, out[0]); });
  }

  Parallel team_;
  void (Move::*run_)(Call) const;
};
GESTALT_KERNEL(Move<CopyOp>);
GESTALT_KERNEL(Move<CastOp>);

class Fill : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.fill";

  explicit Fill(Plan plan) : team_(plan.host()), value_(plan.attrs().f64("value")) {
    need_dtype(plan, plan.out(0), "y", {kF32, kF64, kBF16, kF16, kI32, kI64, kU8, kBool});
  }
  void run(Call call) const {
    elementwise<double, 0, 1>(
        team_, {}, {call.out(0)}, false,
        [value = value_](const auto&, const auto& out, int64_t n) { std::fill(out[0], out[0] + n, value); });
  }

 private:
  Parallel team_;
  double value_;
};
GESTALT_KERNEL(Fill);

}  // namespace
}  // namespace gestalt::kernels_cpu
