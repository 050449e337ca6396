#include <cmath>

#include "gestalt/op_plans/activation.hpp"
#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/elementwise.h"
#include "plugins/kernels_cpu/loops.h"

namespace gestalt::kernels_cpu {
namespace {

// The attribute of an op that has one: 1 for the erf form of gelu, the cap of softcap.
double no_parameter(const Plan&) { return 0; }
double cap_of(const Plan& plan) {
  const double cap = plan.attrs().f64("cap");
  if (!(cap > 0)) throw InvalidArgument(place(plan) + "cap: got " + std::to_string(cap) + ", expected above 0");
  return cap;
}

struct Gelu {
  static constexpr std::string_view name = "core.gelu", backward_name = "core.gelu_bwd";
  static double parameter(const Plan& plan) { return wants_erf(plan) ? 1 : 0; }
  template <class C>
  static void forward(const C* x, C erf, C* y, int64_t n) {
    (erf != 0 ? loops<C>().gelu_erf : loops<C>().gelu_tanh)(x, y, n);
  }
  template <class C>
  static void backward(const C* x, const C* dy, C erf, C* dx, int64_t n) {
    (erf != 0 ? loops<C>().gelu_erf_bwd : loops<C>().gelu_tanh_bwd)(x, dy, dx, n);
  }
};
struct Silu {
  static constexpr std::string_view name = "core.silu", backward_name = "core.silu_bwd";
  static constexpr auto parameter = no_parameter;
  template <class C>
  static void forward(const C* x, C, C* y, int64_t n) {
    loops<C>().silu(x, y, n);
  }
  template <class C>
  static void backward(const C* x, const C* dy, C, C* dx, int64_t n) {
    loops<C>().silu_bwd(x, dy, dx, n);
  }
};
struct Relu {
  static constexpr std::string_view name = "core.relu", backward_name = "core.relu_bwd";
  static constexpr auto parameter = no_parameter;
  template <class C>
  static void forward(const C* x, C, C* y, int64_t n) {
    loops<C>().relu(x, y, n);
  }
  template <class C>
  static void backward(const C* x, const C* dy, C, C* dx, int64_t n) {
    loops<C>().relu_bwd(x, dy, dx, n);
  }
};
// max(x, 0)^2
struct Relu2 {
  static constexpr std::string_view name = "core.relu2", backward_name = "core.relu2_bwd";
  static constexpr auto parameter = no_parameter;
  template <class C>
  static void forward(const C* x, C, C* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] < C(0) ? C(0) : x[i] * x[i];
  }
  template <class C>
  static void backward(const C* x, const C* dy, C, C* dx, int64_t n) {
    for (int64_t i = 0; i < n; ++i) dx[i] = x[i] > C(0) ? C(2) * x[i] * dy[i] : C(0);
  }
};
// log(1 + exp(x)), without overflow.
struct Softplus {
  static constexpr std::string_view name = "core.softplus", backward_name = "core.softplus_bwd";
  static constexpr auto parameter = no_parameter;
  template <class C>
  static void forward(const C* x, C, C* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::max(x[i], C(0)) + std::log1p(std::exp(-std::abs(x[i])));
  }
  template <class C>
  static void backward(const C* x, const C* dy, C, C* dx, int64_t n) {
    for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] / (C(1) + std::exp(-x[i]));
  }
};
// cap tanh(x / cap)
struct Softcap {
  static constexpr std::string_view name = "core.softcap", backward_name = "core.softcap_bwd";
  static constexpr auto parameter = cap_of;
  template <class C>
  static void forward(const C* x, C cap, C* y, int64_t n) {
    loops<C>().softcap(x, C(1), cap, y, n);
  }
  template <class C>
  static void backward(const C* x, const C* dy, C cap, C* dx, int64_t n) {
    C capped[kBlock];
    loops<C>().softcap(x, C(1), cap, capped, n);
    for (int64_t i = 0; i < n; ++i) {
      const C part = capped[i] / cap;
      dx[i] = dy[i] * (C(1) - part * part);
    }
  }
};

template <class Op>
class Forward : public CpuKernel {
 public:
  static constexpr std::string_view op = Op::name;

  explicit Forward(Plan plan) : team_(plan.host()), parameter_(Op::parameter(plan)) {
    need_float(plan, plan.in(0), "x");
    run_ = for_compute_type(plan.in(0).dtype(), &Forward::run_as<float>, &Forward::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const C parameter = static_cast<C>(parameter_);
    elementwise<C, 1, 1>(team_, {call.in(0)}, {call.out(0)}, false, [=](const auto& in, const auto& out, int64_t n) {
      Op::template forward<C>(in[0], parameter, out[0], n);
    });
  }

  Parallel team_;
  double parameter_;
  void (Forward::*run_)(Call) const;
};

template <class Op>
class Backward : public CpuKernel {
 public:
  static constexpr std::string_view op = Op::backward_name;

  explicit Backward(Plan plan) : team_(plan.host()), parameter_(Op::parameter(plan)) {
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
    const C parameter = static_cast<C>(parameter_);
    elementwise<C, 2, 1>(team_, {call.in(0), call.in(1)}, {call.out(0)}, false,
                         [=](const auto& in, const auto& out, int64_t n) {
                           Op::template backward<C>(in[0], in[1], parameter, out[0], n);
                         });
  }

  Parallel team_;
  double parameter_;
  void (Backward::*run_)(Call) const;
};
GESTALT_KERNEL(Forward<Gelu>);
GESTALT_KERNEL(Backward<Gelu>);
GESTALT_KERNEL(Forward<Silu>);
GESTALT_KERNEL(Backward<Silu>);
GESTALT_KERNEL(Forward<Relu>);
GESTALT_KERNEL(Backward<Relu>);
GESTALT_KERNEL(Forward<Relu2>);
GESTALT_KERNEL(Backward<Relu2>);
GESTALT_KERNEL(Forward<Softplus>);
GESTALT_KERNEL(Backward<Softplus>);
GESTALT_KERNEL(Forward<Softcap>);
GESTALT_KERNEL(Backward<Softcap>);

}  // namespace
}  // namespace gestalt::kernels_cpu
