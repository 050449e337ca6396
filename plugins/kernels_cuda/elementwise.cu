#include "plugins/kernels_cuda/elementwise.cuh"

#include "plugins/kernels_cuda/element_kernel.h"

namespace gestalt::kernels_cuda {
namespace {

struct Add {
  static constexpr std::string_view name = "core.add";
  template <class C>
  __device__ void operator()(const C (&in)[2], C (&out)[1]) const {
    out[0] = in[0] + in[1];
  }
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
  __device__ void operator()(const C (&in)[2], C (&out)[1]) const {
    out[0] = in[0] - in[1];
  }
};
struct Mul {
  static constexpr std::string_view name = "core.mul";
  template <class C>
  __device__ void operator()(const C (&in)[2], C (&out)[1]) const {
    out[0] = in[0] * in[1];
  }
};
struct Div {
  static constexpr std::string_view name = "core.div";
  template <class C>
  __device__ void operator()(const C (&in)[2], C (&out)[1]) const {
    out[0] = in[0] / in[1];
  }
};

// y = a op b; the shape of b is that of a or of its last dimensions. Op: what is computed, shared by several names.
template <class Name, class Op>
class Binary : public ElementKernel {
 public:
  static constexpr std::string_view op = Name::name;
  static constexpr uint64_t flags = ElementKernel::accumulating;

  explicit Binary(Plan plan) {
    const View a = plan.in(0), b = plan.in(1);
    need_suffix(plan, b, "b", a);
    if constexpr (std::is_same_v<Op, Div>) {
      need_float(plan, a, "a");
    } else {
      need_dtype(plan, a, "a", {kF32, kF64, kBF16, kF16, kI32, kI64});
      if (!is_floating(a.dtype())) {
        need_dtype(plan, b, "b", {kI32, kI64});
        run_ = &Binary::run_as<int64_t>;
        return;
      }
    }
    need_like(plan, b, "b", a);
    run_ = for_compute_type(a.dtype(), &Binary::run_as<float>, &Binary::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    elementwise<C, 2, 1>(call, op, {call.in(0), call.in(1)}, {call.out(0)}, call.accumulate(0), Op());
  }

  void (Binary::*run_)(Call) const;
};
GESTALT_KERNEL(Binary<Add, Add>);
GESTALT_KERNEL(Binary<ResidualAdd, Add>);
GESTALT_KERNEL(Binary<BiasAdd, Add>);
GESTALT_KERNEL(Binary<Sub, Sub>);
GESTALT_KERNEL(Binary<Mul, Mul>);
GESTALT_KERNEL(Binary<Div, Div>);

template <class C>
struct Multiply {
  C factor;
  __device__ void operator()(const C (&in)[1], C (&out)[1]) const { out[0] = in[0] * factor; }
};
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
class Scale : public ElementKernel {
 public:
  static constexpr std::string_view op = Op::name;
  static constexpr uint64_t flags = ElementKernel::accumulating;

  explicit Scale(Plan plan) : factor_(Op::factor(plan)) {
    need_float(plan, plan.in(0), "x");
    run_ = for_compute_type(plan.in(0).dtype(), &Scale::run_as<float>, &Scale::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    elementwise<C, 1, 1>(call, op, {call.in(0)}, {call.out(0)}, call.accumulate(0),
                         Multiply<C>{static_cast<C>(factor_)});
  }

  double factor_;
  void (Scale::*run_)(Call) const;
};
GESTALT_KERNEL(Scale<ScaleOp>);
GESTALT_KERNEL(Scale<NegOp>);

// average = decay average + (1 - decay) x, in the type of average.
template <class C>
struct Mix {
  C decay, rest;
  __device__ void operator()(const C (&in)[2], C (&out)[1]) const { out[0] = decay * in[0] + rest * in[1]; }
};
class EmaUpdate : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.ema_update";

  explicit EmaUpdate(Plan plan) : decay_(plan.attrs().f64("decay")) {
    need_float(plan, plan.in(0), "average");
    need_float(plan, plan.in(1), "x");
    need_same_shape(plan, plan.in(1), "x", plan.in(0));
    if (!(decay_ >= 0 && decay_ <= 1))
      throw InvalidArgument(place(plan) + "decay: got " + std::to_string(decay_) + ", expected 0 to 1");
    run_ = for_compute_type(plan.in(0).dtype(), &EmaUpdate::run_as<float>, &EmaUpdate::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    elementwise<C, 2, 1>(call, op, {call.in(0), call.in(1)}, {call.in(0)}, false,
                         Mix<C>{static_cast<C>(decay_), static_cast<C>(1 - decay_)});
  }

  double decay_;
  void (EmaUpdate::*run_)(Call) const;
};
GESTALT_KERNEL(EmaUpdate);

}  // namespace
}  // namespace gestalt::kernels_cuda
