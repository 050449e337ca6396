#include <cmath>
#include <limits>

#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/elementwise.h"

// Elementwise functions, comparisons and choices.
namespace gestalt::kernels_cpu {
namespace {

struct Abs {
  static constexpr std::string_view name = "core.abs";
  template <class C>
  static C of(C x) {
    return std::abs(x);
  }
};
struct Exp {
  static constexpr std::string_view name = "core.exp";
  template <class C>
  static C of(C x) {
    return std::exp(x);
  }
};
struct Log {
  static constexpr std::string_view name = "core.log";
  template <class C>
  static C of(C x) {
    return std::log(x);
  }
};
struct Sqrt {
  static constexpr std::string_view name = "core.sqrt";
  template <class C>
  static C of(C x) {
    return std::sqrt(x);
  }
};
struct Rsqrt {
  static constexpr std::string_view name = "core.rsqrt";
  template <class C>
  static C of(C x) {
    return C(1) / std::sqrt(x);
  }
};
struct Tanh {
  static constexpr std::string_view name = "core.tanh";
  template <class C>
  static C of(C x) {
    return std::tanh(x);
  }
};
struct Sigmoid {
  static constexpr std::string_view name = "core.sigmoid";
  template <class C>
  static C of(C x) {
    return C(1) / (C(1) + std::exp(-x));
  }
};

template <class Op>
class Curve : public CpuKernel {
 public:
  static constexpr std::string_view op = Op::name;

  explicit Curve(Plan plan) : team_(plan.host()) {
    need_float(plan, plan.in(0), "x");
    run_ = for_compute_type(plan.in(0).dtype(), &Curve::run_as<float>, &Curve::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    elementwise<C, 1, 1>(team_, {call.in(0)}, {call.out(0)}, false, [](const auto& in, const auto& out, int64_t n) {
      for (int64_t i = 0; i < n; ++i) out[0][i] = Op::of(in[0][i]);
    });
  }

  Parallel team_;
  void (Curve::*run_)(Call) const;
};
GESTALT_KERNEL(Curve<Abs>);
GESTALT_KERNEL(Curve<Exp>);
GESTALT_KERNEL(Curve<Log>);
GESTALT_KERNEL(Curve<Sqrt>);
GESTALT_KERNEL(Curve<Rsqrt>);
GESTALT_KERNEL(Curve<Tanh>);
GESTALT_KERNEL(Curve<Sigmoid>);

// y = x held within [min, max].
class Clamp : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.clamp";

  explicit Clamp(Plan plan) : team_(plan.host()), min_(limit(plan, "min", -1)), max_(limit(plan, "max", 1)) {
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
    const C low = static_cast<C>(min_), high = static_cast<C>(max_);
    elementwise<C, 1, 1>(team_, {call.in(0)}, {call.out(0)}, false, [=](const auto& in, const auto& out, int64_t n) {
      for (int64_t i = 0; i < n; ++i) out[0][i] = in[0][i] < low ? low : in[0][i] > high ? high : in[0][i];
    });
  }

  Parallel team_;
  double min_, max_;
  void (Clamp::*run_)(Call) const;
};
GESTALT_KERNEL(Clamp);

class ClampBwd : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.clamp_bwd";

  explicit ClampBwd(Plan plan)
      : team_(plan.host()), min_(Clamp::limit(plan, "min", -1)), max_(Clamp::limit(plan, "max", 1)) {
    need_float(plan, plan.in(0), "x");
    need_like(plan, plan.in(1), "dy", plan.in(0));
    need_same_shape(plan, plan.in(1), "dy", plan.in(0));
    run_ = for_compute_type(plan.in(0).dtype(), &ClampBwd::run_as<float>, &ClampBwd::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const C low = static_cast<C>(min_), high = static_cast<C>(max_);
    elementwise<C, 2, 1>(team_, {call.in(0), call.in(1)}, {call.out(0)}, false,
                         [=](const auto& in, const auto& out, int64_t n) {
                           for (int64_t i = 0; i < n; ++i)
                             out[0][i] = in[0][i] >= low && in[0][i] <= high ? in[1][i] : C(0);
                         });
  }

  Parallel team_;
  double min_, max_;
  void (ClampBwd::*run_)(Call) const;
};
GESTALT_KERNEL(ClampBwd);

// Integers are compared as integers.
class Compare : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.compare";

  explicit Compare(Plan plan) : team_(plan.host()) {
    const View a = plan.in(0), b = plan.in(1);
    need_dtype(plan, a, "a", {kF32, kF64, kBF16, kF16, kI32, kI64});
    need_dtype(plan, b, "b", {a.dtype()});
    if (b.ndim() > a.ndim())
      throw InvalidArgument(place(plan) + "b: too many dimensions, got " + describe(b) + " for a " + describe(a));
    for (int d = 1; d <= b.ndim(); ++d) need_dim(plan, b, "b", b.ndim() - d, a.dim(-d));
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
  static bool holds(int relation, C a, C b) {
    switch (relation) {
      case 0:
        return a == b;
      case 1:
        return a != b;
      case 2:
        return a < b;
      case 3:
        return a <= b;
      case 4:
        return a > b;
      default:
        return a >= b;
    }
  }
  template <class C>
  void run_as(Call call) const {
    elementwise<C, 2, 1>(team_, {call.in(0), call.in(1)}, {call.out(0)}, false,
                         [relation = relation_](const auto& in, const auto& out, int64_t n) {
                           for (int64_t i = 0; i < n; ++i) out[0][i] = C(holds(relation, in[0][i], in[1][i]) ? 1 : 0);
                         });
  }

  Parallel team_;
  int relation_;
  void (Compare::*run_)(Call) const;
};
GESTALT_KERNEL(Compare);

// a where condition, else b; either may lack leading dimensions of condition.
class Where : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.where";

  explicit Where(Plan plan) : team_(plan.host()) {
    const View condition = plan.in(0), a = plan.in(1), b = plan.in(2);
    need_dtype(plan, condition, "condition", {kBool});
    need_dtype(plan, a, "a", {kF32, kF64, kBF16, kF16, kI32, kI64});
    need_dtype(plan, b, "b", {a.dtype()});
    for (auto [view, name] : {std::pair{a, "a"}, std::pair{b, "b"}}) {
      if (view.ndim() > condition.ndim())
        throw InvalidArgument(place(plan) + name + ": too many dimensions, got " + describe(view) + " for condition " +
                              describe(condition));
      for (int d = 1; d <= view.ndim(); ++d) need_dim(plan, view, name, view.ndim() - d, condition.dim(-d));
    }
    run_ = !is_floating(a.dtype()) ? &Where::run_as<int64_t>
                                   : for_compute_type(a.dtype(), &Where::run_as<float>, &Where::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    elementwise<C, 3, 1>(team_, {call.in(0), call.in(1), call.in(2)}, {call.out(0)}, false,
                         [](const auto& in, const auto& out, int64_t n) {
                           for (int64_t i = 0; i < n; ++i) out[0][i] = in[0][i] != C(0) ? in[1][i] : in[2][i];
                         });
  }

  Parallel team_;
  void (Where::*run_)(Call) const;
};
GESTALT_KERNEL(Where);

}  // namespace
}  // namespace gestalt::kernels_cpu
