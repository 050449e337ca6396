#include <cmath>

#include "gestalt/op_plans/activation.hpp"
#include "plugins/kernels_cpu/copy.h"
#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/elementwise.h"
#include "plugins/kernels_cpu/loops.h"

// y = f(gate) up for gate_up whose last dimension holds the gate, then up.
namespace gestalt::kernels_cpu {
namespace {

void need_halves(const Plan& plan, View gate_up, View half, std::string_view name) {
  need_float(plan, gate_up, "gate_up");
  if (gate_up.ndim() < 1 || gate_up.dim(-1) % 2 != 0)
    throw InvalidArgument(place(plan) + "gate_up: last dimension cannot be halved, got " + describe(gate_up) +
                          ", expected an even size");
  need_ndim(plan, half, name, gate_up.ndim());
  need_dim(plan, half, name, half.ndim() - 1, gate_up.dim(-1) / 2);
}

Part gate_of(View gate_up) { return Part(gate_up, gate_up.ndim() - 1, 0, gate_up.dim(-1) / 2); }
Part up_of(View gate_up) { return Part(gate_up, gate_up.ndim() - 1, gate_up.dim(-1) / 2, gate_up.dim(-1) / 2); }

// With g = min(gate, limit) and u = up held within +-limit: y = g sigmoid(alpha g) (u + up_offset). limit 0: none.
class Swiglu {
 public:
  static constexpr std::string_view name = "core.swiglu", backward_name = "core.swiglu_bwd";
  explicit Swiglu(const Plan& plan)
      : alpha_(plan.attrs().f64("alpha", 1)),
        limit_(plan.attrs().f64("limit", 0)),
        up_offset_(plan.attrs().f64("up_offset", 0)) {
    if (!(limit_ >= 0))
      throw InvalidArgument(place(plan) + "limit: got " + std::to_string(limit_) + ", expected 0 (none) or more");
    plain_ = alpha_ == 1 && limit_ == 0 && up_offset_ == 0;
    if (limit_ == 0) limit_ = HUGE_VAL;
  }
  template <class C>
  void forward(const C* gate, const C* up, C* y, int64_t n) const {
    if (plain_) return loops<C>().swiglu(gate, up, y, n);
    const C alpha = static_cast<C>(alpha_), limit = static_cast<C>(limit_), offset = static_cast<C>(up_offset_);
    for (int64_t i = 0; i < n; ++i) {
      const C g = std::min(gate[i], limit), u = std::clamp(up[i], -limit, limit);
      y[i] = g / (C(1) + std::exp(-alpha * g)) * (u + offset);
    }
  }
  template <class C>
  void backward(const C* gate, const C* up, const C* dy, C* dgate, C* dup, int64_t n) const {
    if (plain_) return loops<C>().swiglu_bwd(gate, up, dy, dgate, dup, n);
    const C alpha = static_cast<C>(alpha_), limit = static_cast<C>(limit_), offset = static_cast<C>(up_offset_);
    for (int64_t i = 0; i < n; ++i) {
      const C g = std::min(gate[i], limit), u = std::clamp(up[i], -limit, limit), d = dy[i];
      const C s = C(1) / (C(1) + std::exp(-alpha * g));
      const C slope = s + alpha * g * s * (C(1) - s);
      const bool inside = up[i] >= -limit && up[i] <= limit;
      dgate[i] = gate[i] <= limit ? d * (u + offset) * slope : C(0);
      dup[i] = inside ? d * g * s : C(0);
    }
  }

 private:
  double alpha_, limit_, up_offset_;
  bool plain_;
};

// f is gelu or relu, through the loops of the ungated activation.
template <class C>
using Unary = void (*)(const C* x, C* y, int64_t n);
template <class C>
using UnaryBwd = void (*)(const C* x, const C* dy, C* dx, int64_t n);

template <class Op>
class Plain {
 public:
  static constexpr std::string_view name = Op::name, backward_name = Op::backward_name;
  explicit Plain(const Plan& plan) : form_(Op::form(plan)) {}
  template <class C>
  void forward(const C* gate, const C* up, C* y, int64_t n) const {
    C active[kBlock];
    Op::template value<C>(form_)(gate, active, n);
    loops<C>().mul(active, up, y, n);
  }
  template <class C>
  void backward(const C* gate, const C* up, const C* dy, C* dgate, C* dup, int64_t n) const {
    C active[kBlock], through[kBlock];
    Op::template value<C>(form_)(gate, active, n);
    loops<C>().mul(dy, up, through, n);
    Op::template slope<C>(form_)(gate, through, dgate, n);
    loops<C>().mul(dy, active, dup, n);
  }

 private:
  bool form_;
};
struct Geglu {
  static constexpr std::string_view name = "core.geglu", backward_name = "core.geglu_bwd";
  static bool form(const Plan& plan) { return wants_erf(plan); }
  template <class C>
  static Unary<C> value(bool erf) {
    return erf ? loops<C>().gelu_erf : loops<C>().gelu_tanh;
  }
  template <class C>
  static UnaryBwd<C> slope(bool erf) {
    return erf ? loops<C>().gelu_erf_bwd : loops<C>().gelu_tanh_bwd;
  }
};
struct Reglu {
  static constexpr std::string_view name = "core.reglu", backward_name = "core.reglu_bwd";
  static bool form(const Plan&) { return false; }
  template <class C>
  static Unary<C> value(bool) {
    return loops<C>().relu;
  }
  template <class C>
  static UnaryBwd<C> slope(bool) {
    return loops<C>().relu_bwd;
  }
};

template <class Op>
class Gated : public CpuKernel {
 public:
  static constexpr std::string_view op = Op::name;

  explicit Gated(Plan plan) : team_(plan.host()), f_(plan) {
    need_halves(plan, plan.in(0), plan.out(0), "y");
    run_ = for_compute_type(plan.in(0).dtype(), &Gated::run_as<float>, &Gated::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const Part gate = gate_of(call.in(0)), up = up_of(call.in(0));
    elementwise<C, 2, 1>(
        team_, {gate.view(), up.view()}, {call.out(0)}, false,
        [this](const auto& in, const auto& out, int64_t n) { f_.template forward<C>(in[0], in[1], out[0], n); });
  }

  Parallel team_;
  Op f_;
  void (Gated::*run_)(Call) const;
};

template <class Op>
class GatedBwd : public CpuKernel {
 public:
  static constexpr std::string_view op = Op::backward_name;

  explicit GatedBwd(Plan plan) : team_(plan.host()), f_(plan) {
    need_halves(plan, plan.in(0), plan.in(1), "dy");
    need_like(plan, plan.in(1), "dy", plan.in(0));
    run_ = for_compute_type(plan.in(0).dtype(), &GatedBwd::run_as<float>, &GatedBwd::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const Part gate = gate_of(call.in(0)), up = up_of(call.in(0));
    const Part dgate = gate_of(call.out(0)), dup = up_of(call.out(0));
    elementwise<C, 3, 2>(team_, {gate.view(), up.view(), call.in(1)}, {dgate.view(), dup.view()}, false,
                         [this](const auto& in, const auto& out, int64_t n) {
                           f_.template backward<C>(in[0], in[1], in[2], out[0], out[1], n);
                         });
  }

  Parallel team_;
  Op f_;
  void (GatedBwd::*run_)(Call) const;
};
GESTALT_KERNEL(Gated<Swiglu>);
GESTALT_KERNEL(GatedBwd<Swiglu>);
GESTALT_KERNEL(Gated<Plain<Geglu>>);
GESTALT_KERNEL(GatedBwd<Plain<Geglu>>);
GESTALT_KERNEL(Gated<Plain<Reglu>>);
GESTALT_KERNEL(GatedBwd<Plain<Reglu>>);

}  // namespace
}  // namespace gestalt::kernels_cpu
