#include <algorithm>
#include <limits>

#include "plugins/kernels_cuda/element_kernel.h"
#include "plugins/kernels_cuda/elementwise.cuh"

// Elementwise functions, comparisons and choices.
namespace gestalt::kernels_cuda {
namespace {

struct Abs {
  static constexpr std::string_view name = "core.abs";
  template <class C>
  __device__ void operator()(const C (&in)[1], C (&out)[1]) const {
    out[0] = in[0] < C(0) ? -in[0] : in[0] + C(0);  // -0 becomes 0
  }
};
struct Exp {
  static constexpr std::string_view name = "core.exp";
  template <class C>
  __device__ void operator()(const C (&in)[1], C (&out)[1]) const {
    out[0] = exp(in[0]);
  }
};
struct Log {
  static constexpr std::string_view name = "core.log";
  template <class C>
  __device__ void operator()(const C (&in)[1], C (&out)[1]) const {
    out[0] = log(in[0]);
  }
};
struct Sqrt {
  static constexpr std::string_view name = "core.sqrt";
  template <class C>
  __device__ void operator()(const C (&in)[1], C (&out)[1]) const {
    out[0] = sqrt(in[0]);
  }
};
struct Rsqrt {
  static constexpr std::string_view name = "core.rsqrt";
  template <class C>
  __device__ void operator()(const C (&in)[1], C (&out)[1]) const {
    out[0] = C(1) / sqrt(in[0]);
  }
};
struct Tanh {
  static constexpr std::string_view name = "core.tanh";
  template <class C>
  __device__ void operator()(const C (&in)[1], C (&out)[1]) const {
    out[0] = tanh(in[0]);
  }
};
struct Sigmoid {
  static constexpr std::string_view name = "core.sigmoid";
  template <class C>
  __device__ void operator()(const C (&in)[1], C (&out)[1]) const {
    out[0] = C(1) / (C(1) + exp(-in[0]));
  }
};

template <class Op>
class Curve : public ElementKernel {
 public:
  static constexpr std::string_view op = Op::name;

  explicit Curve(Plan plan) {
    need_float(plan, plan.in(0), "x");
    run_ = for_compute_type(plan.in(0).dtype(), &Curve::run_as<float>, &Curve::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    elementwise<C, 1, 1>(call, op, {call.in(0)}, {call.out(0)}, false, Op());
  }

  void (Curve::*run_)(Call) const;
};
GESTALT_KERNEL(Curve<Abs>);
GESTALT_KERNEL(Curve<Exp>);
GESTALT_KERNEL(Curve<Log>);
GESTALT_KERNEL(Curve<Sqrt>);
GESTALT_KERNEL(Curve<Rsqrt>);
GESTALT_KERNEL(Curve<Tanh>);
GESTALT_KERNEL(Curve<Sigmoid>);

template <class C>
struct Hold {
  C low, high;
  __device__ void operator()(const C (&in)[1], C (&out)[1]) const {
    out[0] = in[0] < low ? low : in[0] > high ? high : in[0];
  }
};
template <class C>
struct HoldBwd {
  C low, high;
  __device__ void operator()(const C (&in)[2], C (&out)[1]) const {
    out[0] = in[0] >= low && in[0] <= high ? in[1] : C(0);
  }
};

// y = x held within [min, max].
class Clamp : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.clamp";

  explicit Clamp(Plan plan) : min_(limit(plan, "min", -1)), max_(limit(plan, "max", 1)) {
    need_float(plan, plan.in(0), "x");
    if (!(min_ <= max_))
      throw InvalidArgument(place(plan) + "min: got " + std::to_string(min_) + " and max " + std::to_string(max_) +
                            ", expected min <= max");
    run_ = for_compute_type(plan.in(0).dtype(), &Clamp::run_as<float>, &Clamp::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }
  static double limit(const Plan& plan, std::string_view name, double sign) {
    return plan.attrs().f64(name, sign * std::numeric_limits<double>::infinity());
  }

 private:
  template <class C>
  void run_as(Call call) const {
    elementwise<C, 1, 1>(call, op, {call.in(0)}, {call.out(0)}, false,
                         Hold<C>{static_cast<C>(min_), static_cast<C>(max_)});
  }

  double min_, max_;
  void (Clamp::*run_)(Call) const;
};
GESTALT_KERNEL(Clamp);

class ClampBwd : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.clamp_bwd";

  explicit ClampBwd(Plan plan) : min_(Clamp::limit(plan, "min", -1)), max_(Clamp::limit(plan, "max", 1)) {
    need_float(plan, plan.in(0), "x");
    need_like(plan, plan.in(1), "dy", plan.in(0));
    need_same_shape(plan, plan.in(1), "dy", plan.in(0));
    run_ = for_compute_type(plan.in(0).dtype(), &ClampBwd::run_as<float>, &ClampBwd::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    elementwise<C, 2, 1>(call, op, {call.in(0), call.in(1)}, {call.out(0)}, false,
                         HoldBwd<C>{static_cast<C>(min_), static_cast<C>(max_)});
  }

  double min_, max_;
  void (ClampBwd::*run_)(Call) const;
};
GESTALT_KERNEL(ClampBwd);

// relation: 0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge.
struct Relation {
  int which;
  template <class C>
  __device__ void operator()(const C (&in)[2], C (&out)[1]) const {
    const C a = in[0], b = in[1];
    const bool holds = which == 0   ? a == b
                       : which == 1 ? a != b
                       : which == 2 ? a < b
                       : which == 3 ? a <= b
                       : which == 4 ? a > b
                                    : a >= b;
    out[0] = holds ? C(1) : C(0);
  }
};

// Integers are compared as integers.
class Compare : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.compare";

  explicit Compare(Plan plan) {
    const View a = plan.in(0), b = plan.in(1);
    need_dtype(plan, a, "a", {kF32, kF64, kBF16, kF16, kI32, kI64});
    need_dtype(plan, b, "b", {a.dtype()});
    need_suffix(plan, b, "b", a);
    constexpr std::string_view names[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    const std::string_view asked = plan.attrs().str("relation");
    relation_ = static_cast<int>(std::find(names, names + 6, asked) - names);
    if (relation_ == 6)
      throw InvalidArgument(place(plan) + "relation: got '" + std::string(asked) +
                            "', expected eq, ne, lt, le, gt or ge");
    run_ = !is_floating(a.dtype()) ? &Compare::run_as<int64_t>
                                   : for_compute_type(a.dtype(), &Compare::run_as<float>, &Compare::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    elementwise<C, 2, 1>(call, op, {call.in(0), call.in(1)}, {call.out(0)}, false, Relation{relation_});
  }

  int relation_;
  void (Compare::*run_)(Call) const;
};
GESTALT_KERNEL(Compare);

struct Choice {
  template <class C>
  __device__ void operator()(const C (&in)[3], C (&out)[1]) const {
    out[0] = in[0] != C(0) ? in[1] : in[2];
  }
};

// a where condition, else b; either may lack leading dimensions of condition.
class Where : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.where";

  explicit Where(Plan plan) {
    const View condition = plan.in(0), a = plan.in(1), b = plan.in(2);
    need_dtype(plan, condition, "condition", {kBool});
    need_dtype(plan, a, "a", {kF32, kF64, kBF16, kF16, kI32, kI64});
    need_dtype(plan, b, "b", {a.dtype()});
    need_suffix(plan, a, "a", condition);
    need_suffix(plan, b, "b", condition);
    run_ = !is_floating(a.dtype()) ? &Where::run_as<int64_t>
                                   : for_compute_type(a.dtype(), &Where::run_as<float>, &Where::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    elementwise<C, 3, 1>(call, op, {call.in(0), call.in(1), call.in(2)}, {call.out(0)}, false, Choice());
  }

  void (Where::*run_)(Call) const;
};
GESTALT_KERNEL(Where);

}  // namespace
}  // namespace gestalt::kernels_cuda
