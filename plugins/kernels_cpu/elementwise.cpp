#include "plugins/kernels_cpu/elementwise.h"

#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/loops.h"

namespace gestalt::kernels_cpu {
namespace {

struct Add {
  static constexpr std::string_view name = "core.add";
  template <class C>
  static auto loop() {
    return loops<C>().add;
  }
  static int64_t one(int64_t a, int64_t b) { return a + b; }
};
struct ResidualAdd : Add {
  static constexpr std::string_view name = "core.residual_add";
};
struct BiasAdd : Add {
  static constexpr std::string_view name = "core.bias_add";
};
struct Sub {
  static constexpr std::string_view name = "core.sub";
  template <class C>
  static auto loop() {
    return loops<C>().sub;
  }
  static int64_t one(int64_t a, int64_t b) { return a - b; }
};
struct Mul {
  static constexpr std::string_view name = "core.mul";
  template <class C>
  static auto loop() {
    return loops<C>().mul;
  }
  static int64_t one(int64_t a, int64_t b) { return a * b; }
};
struct Div {
  static constexpr std::string_view name = "core.div";
  template <class C>
  static auto loop() {
    return loops<C>().div;
  }
};

// y = a op b; the shape of b is that of a or of its last dimensions.
template <class Op>
class Binary : public CpuKernel {
 public:
  static constexpr std::string_view op = Op::name;
  static constexpr uint64_t flags = CpuKernel::accumulating;

  explicit Binary(Plan plan) : team_(plan.host()) {
    const View a = plan.in(0), b = plan.in(1);
    if (b.ndim() > a.ndim())
      throw InvalidArgument(place(plan) + "b: too many dimensions, got " + describe(b) + " for a " + describe(a));
    for (int d = 1; d <= b.ndim(); ++d) need_dim(plan, b, "b", b.ndim() - d, a.dim(-d));
    if constexpr (std::is_same_v<Op, Div>) {
      need_float(plan, a, "a");
    } else {
      need_dtype(plan, a, "a", {kF32, kF64, kBF16, kF16, kI32, kI64});
      if (!is_floating(a.dtype())) {
        need_dtype(plan, b, "b", {kI32, kI64});
        run_ = &Binary::run_integer;
        return;
      }
    }
    need_like(plan, b, "b", a);
    run_ = for_compute_type(a.dtype(), &Binary::run_float<float>, &Binary::run_float<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_float(Call call) const {
    const auto loop = Op::template loop<C>();
    elementwise<C, 2, 1>(team_, {call.in(0), call.in(1)}, {call.out(0)}, call.accumulate(0),
                         [=](const auto& in, const auto& out, int64_t n) { loop(in[0], in[1], out[0], n); });
  }
  void run_integer(Call call) const {
    if constexpr (!std::is_same_v<Op, Div>)
      elementwise<int64_t, 2, 1>(team_, {call.in(0), call.in(1)}, {call.out(0)}, call.accumulate(0),
                                 [](const auto& in, const auto& out, int64_t n) {
                                   for (int64_t i = 0; i < n; ++i) out[0][i] = Op::one(in[0][i], in[1][i]);
                                 });
  }

  Parallel team_;
  void (Binary::*run_)(Call) const;
};
GESTALT_KERNEL(Binary<Add>);
GESTALT_KERNEL(Binary<ResidualAdd>);
GESTALT_KERNEL(Binary<BiasAdd>);
GESTALT_KERNEL(Binary<Sub>);
GESTALT_KERNEL(Binary<Mul>);
GESTALT_KERNEL(Binary<Div>);

struct ScaleOp {
  static constexpr std::string_view name = "core.scale";
  static double factor(const Plan& plan) { return plan.attrs().f64("factor"); }
};
struct NegOp {
  static constexpr std::string_view name = "core.neg";
  static double factor(const Plan&) { return -1; }
};

// y = factor x.
template <class Op>
class Scale : public CpuKernel {
 public:
  static constexpr std::string_view op = Op::name;
  static constexpr uint64_t flags = CpuKernel::accumulating;

  explicit Scale(Plan plan) : team_(plan.host()), factor_(Op::factor(plan)) {
    need_float(plan, plan.in(0), "x");
    run_ = for_compute_type(plan.in(0).dtype(), &Scale::run_as<float>, &Scale::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const auto loop = loops<C>().scale;
    const C factor = static_cast<C>(factor_);
    elementwise<C, 1, 1>(team_, {call.in(0)}, {call.out(0)}, call.accumulate(0),
                         [=](const auto& in, const auto& out, int64_t n) { loop(in[0], factor, out[0], n); });
  }

  Parallel team_;
  double factor_;
  void (Scale::*run_)(Call) const;
};
GESTALT_KERNEL(Scale<ScaleOp>);
GESTALT_KERNEL(Scale<NegOp>);

}  // namespace
}  // namespace gestalt::kernels_cpu
