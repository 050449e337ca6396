#include "plugins/kernels_cuda/activation.cuh"

#include "plugins/kernels_cuda/elementwise.cuh"

namespace gestalt::kernels_cuda {
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
  static __device__ C value(C x, C erf) {
    return gelu(x, erf != C(0));
  }
  template <class C>
  static __device__ C through(C x, C dy, C erf) {
    return dy * gelu_slope(x, erf != C(0));
  }
};
struct Silu {
  static constexpr std::string_view name = "core.silu", backward_name = "core.silu_bwd";
  static constexpr auto parameter = no_parameter;
  template <class C>
  static __device__ C value(C x, C) {
    return x * sigmoid(x);
  }
  template <class C>
  static __device__ C through(C x, C dy, C) {
    return dy * silu_slope(x);
  }
};
struct Relu {
  static constexpr std::string_view name = "core.relu", backward_name = "core.relu_bwd";
  static constexpr auto parameter = no_parameter;
  template <class C>
  static __device__ C value(C x, C) {
    return x < C(0) ? C(0) : x;
  }
  template <class C>
  static __device__ C through(C x, C dy, C) {
    return x > C(0) ? dy : C(0);
  }
};
// max(x, 0)^2
struct Relu2 {
  static constexpr std::string_view name = "core.relu2", backward_name = "core.relu2_bwd";
  static constexpr auto parameter = no_parameter;
  template <class C>
  static __device__ C value(C x, C) {
    return x < C(0) ? C(0) : x * x;
  }
  template <class C>
  static __device__ C through(C x, C dy, C) {
    return x > C(0) ? C(2) * x * dy : C(0);
  }
};
// log(1 + exp(x)), without overflow.
struct Softplus {
  static constexpr std::string_view name = "core.softplus", backward_name = "core.softplus_bwd";
  static constexpr auto parameter = no_parameter;
  template <class C>
  static __device__ C value(C x, C) {
    const C size = x < C(0) ? -x : x;
    return (x > C(0) ? x : C(0)) + log1p(exp(-size));
  }
  template <class C>
  static __device__ C through(C x, C dy, C) {
    return dy / (C(1) + exp(-x));
  }
};
// cap tanh(x / cap)
struct Softcap {
  static constexpr std::string_view name = "core.softcap", backward_name = "core.softcap_bwd";
  static constexpr auto parameter = cap_of;
  template <class C>
  static __device__ C value(C x, C cap) {
    return cap * tanh(x / cap);
  }
  template <class C>
  static __device__ C through(C x, C dy, C cap) {
    const C part = tanh(x / cap);
    return dy * (C(1) - part * part);
  }
};

template <class Op, class C>
struct ForwardOf {
  C parameter;
  __device__ void operator()(const C (&in)[1], C (&out)[1]) const { out[0] = Op::value(in[0], parameter); }
};
template <class Op, class C>
struct BackwardOf {
  C parameter;
  __device__ void operator()(const C (&in)[2], C (&out)[1]) const { out[0] = Op::through(in[0], in[1], parameter); }
};

template <class Op>
class Forward : public ElementKernel {
 public:
  static constexpr std::string_view op = Op::name;

  explicit Forward(Plan plan) : parameter_(Op::parameter(plan)) {
    need_float(plan, plan.in(0), "x");
    run_ = for_compute_type(plan.in(0).dtype(), &Forward::run_as<float>, &Forward::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    elementwise<C, 1, 1>(call, op, {call.in(0)}, {call.out(0)}, false, ForwardOf<Op, C>{static_cast<C>(parameter_)});
  }

  double parameter_;
  void (Forward::*run_)(Call) const;
};

template <class Op>
class Backward : public ElementKernel {
 public:
  static constexpr std::string_view op = Op::backward_name;

  explicit Backward(Plan plan) : parameter_(Op::parameter(plan)) {
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
    elementwise<C, 2, 1>(call, op, {call.in(0), call.in(1)}, {call.out(0)}, false,
                         BackwardOf<Op, C>{static_cast<C>(parameter_)});
  }

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
}  // namespace gestalt::kernels_cuda
