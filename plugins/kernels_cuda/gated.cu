#include <cmath>

#include "plugins/kernels_cuda/activation.cuh"
#include "plugins/kernels_cuda/elementwise.cuh"
#include "plugins/kernels_cuda/part.h"

// y = f(gate) up for gate_up whose last dimension holds the gate, then up.
namespace gestalt::kernels_cuda {
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
struct Swiglu {
  static constexpr std::string_view name = "core.swiglu", backward_name = "core.swiglu_bwd";
  struct Setting {
    double alpha = 1, limit = 0, offset = 0;
    explicit Setting(const Plan& plan)
        : alpha(plan.attrs().f64("alpha", 1)),
          limit(plan.attrs().f64("limit", 0)),
          offset(plan.attrs().f64("up_offset", 0)) {
      if (!(limit >= 0))
        throw InvalidArgument(place(plan) + "limit: got " + std::to_string(limit) + ", expected 0 (none) or more");
      if (limit == 0) limit = HUGE_VAL;
    }
  };
  template <class C>
  struct Of {
    C alpha, limit, offset;
    explicit Of(const Setting& s)
        : alpha(static_cast<C>(s.alpha)), limit(static_cast<C>(s.limit)), offset(static_cast<C>(s.offset)) {}
    __device__ C held(C up) const { return up < -limit ? -limit : up > limit ? limit : up; }
    __device__ void forward(C gate, C up, C& y) const {
      const C g = gate > limit ? limit : gate;
      y = g * sigmoid(alpha * g) * (held(up) + offset);
    }
    __device__ void backward(C gate, C up, C dy, C& dgate, C& dup) const {
      const C g = gate > limit ? limit : gate;
      const C s = sigmoid(alpha * g);
      const C slope = s + alpha * g * s * (C(1) - s);
      dgate = gate <= limit ? dy * (held(up) + offset) * slope : C(0);
      dup = up >= -limit && up <= limit ? dy * g * s : C(0);
    }
  };
};

struct Geglu {
  static constexpr std::string_view name = "core.geglu", backward_name = "core.geglu_bwd";
  struct Setting {
    bool erf;
    explicit Setting(const Plan& plan) : erf(wants_erf(plan)) {}
  };
  template <class C>
  struct Of {
    bool erf;
    explicit Of(const Setting& s) : erf(s.erf) {}
    __device__ void forward(C gate, C up, C& y) const { y = gelu(gate, erf) * up; }
    __device__ void backward(C gate, C up, C dy, C& dgate, C& dup) const {
      dgate = dy * up * gelu_slope(gate, erf);
      dup = dy * gelu(gate, erf);
    }
  };
};

struct Reglu {
  static constexpr std::string_view name = "core.reglu", backward_name = "core.reglu_bwd";
  struct Setting {
    explicit Setting(const Plan&) {}
  };
  template <class C>
  struct Of {
    explicit Of(const Setting&) {}
    __device__ void forward(C gate, C up, C& y) const { y = (gate < C(0) ? C(0) : gate) * up; }
    __device__ void backward(C gate, C up, C dy, C& dgate, C& dup) const {
      dgate = gate > C(0) ? dy * up : C(0);
      dup = dy * (gate < C(0) ? C(0) : gate);
    }
  };
};

template <class C, class F>
struct GatedOf {
  F f;
  __device__ void operator()(const C (&in)[2], C (&out)[1]) const { f.forward(in[0], in[1], out[0]); }
};
template <class C, class F>
struct GatedBwdOf {
  F f;
  __device__ void operator()(const C (&in)[3], C (&out)[2]) const { f.backward(in[0], in[1], in[2], out[0], out[1]); }
};

template <class Op>
class Gated : public ElementKernel {
 public:
  static constexpr std::string_view op = Op::name;

  explicit Gated(Plan plan) : setting_(plan) {
    need_halves(plan, plan.in(0), plan.out(0), "y");
    run_ = for_compute_type(plan.in(0).dtype(), &Gated::run_as<float>, &Gated::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    using F = typename Op::template Of<C>;
    const Part gate = gate_of(call.in(0)), up = up_of(call.in(0));
    elementwise<C, 2, 1>(call, op, {gate.view(), up.view()}, {call.out(0)}, false, GatedOf<C, F>{F(setting_)});
  }

  typename Op::Setting setting_;
  void (Gated::*run_)(Call) const;
};

template <class Op>
class GatedBwd : public ElementKernel {
 public:
  static constexpr std::string_view op = Op::backward_name;

  explicit GatedBwd(Plan plan) : setting_(plan) {
    need_halves(plan, plan.in(0), plan.in(1), "dy");
    need_like(plan, plan.in(1), "dy", plan.in(0));
    run_ = for_compute_type(plan.in(0).dtype(), &GatedBwd::run_as<float>, &GatedBwd::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    using F = typename Op::template Of<C>;
    const Part gate = gate_of(call.in(0)), up = up_of(call.in(0));
    const Part dgate = gate_of(call.out(0)), dup = up_of(call.out(0));
    elementwise<C, 3, 2>(call, op, {gate.view(), up.view(), call.in(1)}, {dgate.view(), dup.view()}, false,
                         GatedBwdOf<C, F>{F(setting_)});
  }

  typename Op::Setting setting_;
  void (GatedBwd::*run_)(Call) const;
};
GESTALT_KERNEL(Gated<Swiglu>);
GESTALT_KERNEL(GatedBwd<Swiglu>);
GESTALT_KERNEL(Gated<Geglu>);
GESTALT_KERNEL(GatedBwd<Geglu>);
GESTALT_KERNEL(Gated<Reglu>);
GESTALT_KERNEL(GatedBwd<Reglu>);

}  // namespace
}  // namespace gestalt::kernels_cuda
