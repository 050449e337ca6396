#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/elementwise.h"
#include "plugins/kernels_cpu/loops.h"

namespace gestalt::kernels_cpu {
namespace {

// Whether gelu is the erf form; the attribute's other value is "tanh".
bool wants_erf(const Plan& plan) {
  const std::string_view form = plan.attrs().str("approximate", "tanh");
  if (form != "tanh" && form != "none")
    throw InvalidArgument(place(plan) + "approximate: unknown form, got '" + std::string(form) +
                          "', expected 'tanh' or 'none'");
  return form == "none";
}

struct Gelu {
  static constexpr std::string_view name = "core.gelu", backward_name = "core.gelu_bwd";
  static bool variant(const Plan& plan) { return wants_erf(plan); }
  template <class C>
  static auto forward(bool erf) {
    return erf ? loops<C>().gelu_erf : loops<C>().gelu_tanh;
  }
  template <class C>
  static auto backward(bool erf) {
    return erf ? loops<C>().gelu_erf_bwd : loops<C>().gelu_tanh_bwd;
  }
};
struct Silu {
  static constexpr std::string_view name = "core.silu", backward_name = "core.silu_bwd";
  static bool variant(const Plan&) { return false; }
  template <class C>
  static auto forward(bool) {
    return loops<C>().silu;
  }
  template <class C>
  static auto backward(bool) {
    return loops<C>().silu_bwd;
  }
};
struct Relu {
  static constexpr std::string_view name = "core.relu", backward_name = "core.relu_bwd";
  static bool variant(const Plan&) { return false; }
  template <class C>
  static auto forward(bool) {
    return loops<C>().relu;
  }
  template <class C>
  static auto backward(bool) {
    return loops<C>().relu_bwd;
  }
};

template <class Op>
class Forward : public CpuKernel {
 public:
  static constexpr std::string_view op = Op::name;

  explicit Forward(Plan plan) : team_(plan.host()), variant_(Op::variant(plan)) {
    need_float(plan, plan.in(0), "x");
    run_ = for_compute_type(plan.in(0).dtype(), &Forward::run_as<float>, &Forward::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const auto loop = Op::template forward<C>(variant_);
    elementwise<C, 1, 1>(team_, {call.in(0)}, {call.out(0)}, false,
                         [=](const auto& in, const auto& out, int64_t n) { loop(in[0], out[0], n); });
  }

  Parallel team_;
  bool variant_;
  void (Forward::*run_)(Call) const;
};

template <class Op>
class Backward : public CpuKernel {
 public:
  static constexpr std::string_view op = Op::backward_name;

  explicit Backward(Plan plan) : team_(plan.host()), variant_(Op::variant(plan)) {
    const View x = plan.in(0), dy = plan.in(1);
    need_float(plan, x, "x");
    need_like(plan, dy, "dy", x);
    need_same_shape(plan, dy, "dy", x);
    run_ = for_compute_type(x.dtype(), &Backward::run_as<float>, &Backward::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const auto loop = Op::template backward<C>(variant_);
    elementwise<C, 2, 1>(team_, {call.in(0), call.in(1)}, {call.out(0)}, false,
                         [=](const auto& in, const auto& out, int64_t n) { loop(in[0], in[1], out[0], n); });
  }

  Parallel team_;
  bool variant_;
  void (Backward::*run_)(Call) const;
};
GESTALT_KERNEL(Forward<Gelu>);
GESTALT_KERNEL(Backward<Gelu>);
GESTALT_KERNEL(Forward<Silu>);
GESTALT_KERNEL(Backward<Silu>);
GESTALT_KERNEL(Forward<Relu>);
GESTALT_KERNEL(Backward<Relu>);

}  // namespace
}  // namespace gestalt::kernels_cpu
