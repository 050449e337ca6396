#include "plugins/kernels_cuda/update.cuh"

namespace gestalt::kernels_cuda {
namespace {

// Within 2 units in the last place.
__device__ __forceinline__ float root(float x) {
  float y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ double root(double x) { return sqrt(x); }
__device__ __forceinline__ float quotient(float a, float b) { return __fdividef(a, b); }
__device__ __forceinline__ double quotient(double a, double b) { return a / b; }

// With g = clip grad: m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
// param -= lr lr_scale (m' / (sqrt(v') + eps) + decay param), where m' = m / (1 - beta1^step) and v' likewise.
// A negative clip means a gradient that is not finite: nothing changes.
struct AdamwRule {
  double beta1, beta2, eps;
  template <class C>
  struct Factors {
    C clip, beta1, beta2, rest1, rest2, step, inv, tiny, shrink;
  };
  __device__ void prepare(StepNumbers& s) const {
    s.scale1 = 1 / (1 - pow(beta1, s.step));
    s.scale2 = 1 / sqrt(1 - pow(beta2, s.step));
  }
  template <class C>
  __device__ __forceinline__ Factors<C> factors(const StepNumbers& s, double decay, double lr_scale) const {
    return {static_cast<C>(s.clip),    static_cast<C>(beta1),     static_cast<C>(beta2),
            static_cast<C>(1 - beta1), static_cast<C>(1 - beta2), static_cast<C>(s.lr * lr_scale * s.scale1),
            static_cast<C>(s.scale2),  static_cast<C>(eps),       static_cast<C>(s.lr * lr_scale * decay)};
  }
  template <class C>
  __device__ __forceinline__ void one(const Factors<C>& f, C grad, C& weight, C (&state)[2]) const {
    const C g = grad * f.clip;
    state[0] = f.beta1 * state[0] + f.rest1 * g;
    state[1] = f.beta2 * state[1] + f.rest2 * g * g;
    weight -= quotient(f.step * state[0], root(state[1]) * f.inv + f.tiny) + f.shrink * weight;
  }
};

class AdamwUpdate : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.adamw_update";

  explicit AdamwUpdate(Plan plan)
      : rule_{plan.attrs().f64("beta1", 0.9), plan.attrs().f64("beta2", 0.95), plan.attrs().f64("eps", 1e-8)} {
    need_update(plan, kSegments);
    need_vector(plan, kM, "m", plan.in(kParam));
    need_vector(plan, kV, "v", plan.in(kParam));
    run_ = for_compute_type(plan.in(kParam).dtype(), &AdamwUpdate::run_as<float>, &AdamwUpdate::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  static constexpr uint64_t kM = 3, kV = 4, kSegments = 5;

  template <class C>
  void run_as(Call call) const {
    update<C, 2>(call, op, {kM, kV}, kSegments, rule_);
  }

  AdamwRule rule_;
  void (AdamwUpdate::*run_)(Call) const;
};
GESTALT_KERNEL(AdamwUpdate);

// With g = clip grad + decay param and, where there is momentum, buf = momentum buf + g:
// param -= lr lr_scale d, where d is g without momentum, buf with it, g + momentum buf with nesterov.
struct SgdRule {
  double momentum;
  bool nesterov, buffer;
  template <class C>
  struct Factors {
    C clip, rate, shrink, keep;
  };
  __device__ void prepare(StepNumbers&) const {}
  template <class C>
  __device__ __forceinline__ Factors<C> factors(const StepNumbers& s, double decay, double lr_scale) const {
    return {static_cast<C>(s.clip), static_cast<C>(s.lr * lr_scale), static_cast<C>(decay), static_cast<C>(momentum)};
  }
  template <class C>
  __device__ __forceinline__ void one(const Factors<C>& f, C grad, C& weight, C (&state)[1]) const {
    const C g = grad * f.clip + f.shrink * weight;
    C d = g;
    if (buffer) {
      state[0] = f.keep * state[0] + g;
      d = nesterov ? g + f.keep * state[0] : state[0];
    }
    weight -= f.rate * d;
  }
};

class SgdUpdate : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.sgd_update";

  explicit SgdUpdate(Plan plan)
      : rule_{plan.attrs().f64("momentum", 0), plan.attrs().boolean("nesterov", false), plan.has_in(kMomentum)} {
    need_update(plan, kSegments);
    if (plan.has_in(kMomentum)) need_vector(plan, kMomentum, "momentum", plan.in(kParam));
    run_ = for_compute_type(plan.in(kParam).dtype(), &SgdUpdate::run_as<float>, &SgdUpdate::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  static constexpr uint64_t kMomentum = 3, kSegments = 4;

  template <class C>
  void run_as(Call call) const {
    update<C, 1>(call, op, {kMomentum}, kSegments, rule_);
  }

  SgdRule rule_;
  void (SgdUpdate::*run_)(Call) const;
};
GESTALT_KERNEL(SgdUpdate);

// With g = clip grad: param -= lr lr_scale (sign(beta1 m + (1 - beta1) g) + decay param), then m = beta2 m + (1 -
// beta2) g (Chen and others, "Symbolic discovery of optimization algorithms", 2023).
struct LionRule {
  double beta1, beta2;
  template <class C>
  struct Factors {
    C clip, rate, shrink, beta1, beta2, rest1, rest2;
  };
  __device__ void prepare(StepNumbers&) const {}
  template <class C>
  __device__ __forceinline__ Factors<C> factors(const StepNumbers& s, double decay, double lr_scale) const {
    return {static_cast<C>(s.clip), static_cast<C>(s.lr * lr_scale), static_cast<C>(decay),    static_cast<C>(beta1),
            static_cast<C>(beta2),  static_cast<C>(1 - beta1),       static_cast<C>(1 - beta2)};
  }
  template <class C>
  __device__ __forceinline__ void one(const Factors<C>& f, C grad, C& weight, C (&state)[1]) const {
    const C g = f.clip * grad, mixed = f.beta1 * state[0] + f.rest1 * g;
    const C sign = mixed > C(0) ? C(1) : mixed < C(0) ? C(-1) : C(0);
    weight -= f.rate * (sign + f.shrink * weight);
    state[0] = f.beta2 * state[0] + f.rest2 * g;
  }
};

class LionUpdate : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.lion_update";

  explicit LionUpdate(Plan plan) : rule_{plan.attrs().f64("beta1", 0.9), plan.attrs().f64("beta2", 0.99)} {
    need_update(plan, kSegments);
    need_vector(plan, kMoment, "m", plan.in(kParam));
    run_ = for_compute_type(plan.in(kParam).dtype(), &LionUpdate::run_as<float>, &LionUpdate::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  static constexpr uint64_t kMoment = 3, kSegments = 4;

  template <class C>
  void run_as(Call call) const {
    update<C, 1>(call, op, {kMoment}, kSegments, rule_);
  }

  LionRule rule_;
  void (LionUpdate::*run_)(Call) const;
};
GESTALT_KERNEL(LionUpdate);

// The gradient is a sum over tokens: norm = sqrt(sum_squares) inv_tokens is that of the mean, and clip is the factor
// that turns the sum into the clipped mean: min(1, max_norm / (norm + 1e-6)) inv_tokens, without the first factor when
// max_norm is 0. clip = -1 tells the update to skip when the norm is not finite.
__global__ void clip_scale(const Side squares, const Side scalars, int64_t step, double max_norm, const Side clip,
                           const Side norm) {
  const double inv_tokens = load_one<double>(scalars, GESTALT_SCALAR_INV_TOKENS * step);
  const double value = sqrt(load_one<double>(squares, 0)) * inv_tokens;
  const double factor = max_norm > 0 ? fmin(1.0, max_norm / (value + 1e-6)) : 1.0;
  store_one<double>(clip, 0, isfinite(value) ? factor * inv_tokens : -1.0);
  store_one<double>(norm, 0, value);
}

class NormClipScale : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.norm_clip_scale";

  explicit NormClipScale(Plan plan) : max_norm_(plan.attrs().f64("max_norm", 0)) {
    need_float(plan, plan.in(0), "sum_squares");
    need_ndim(plan, plan.in(0), "sum_squares", 0);
    need_float(plan, plan.in(1), "scalars");
    need_ndim(plan, plan.in(1), "scalars", 1);
    if (!(max_norm_ >= 0))
      throw InvalidArgument(place(plan) + "max_norm: got " + std::to_string(max_norm_) + ", expected 0 or more");
  }
  void run(Call call) const {
    clip_scale<<<1, 1, 0, stream_of(call)>>>(side_of(call.in(0)), side_of(call.in(1)), call.in(1).stride(0), max_norm_,
                                             side_of(call.out(0)), side_of(call.out(1)));
    check_launch(op);
  }

 private:
  double max_norm_;
};
GESTALT_KERNEL(NormClipScale);

// A step whose gradient is not finite multiplies loss_scale by backoff and restarts the count of good steps; `interval`
// good steps in a row multiply it by growth. It stays within [min, max].
struct LossScaleRule {
  double growth, backoff, min, max;
  int64_t interval;
};
__global__ void scale_loss(const LossScaleRule rule, const Side loss_scale, const Side good_steps, const Side finite) {
  double scale = load_one<double>(loss_scale, 0);
  int64_t good = load_one<int64_t>(good_steps, 0) + 1;
  if (load_one<int64_t>(finite, 0) == 0) {
    scale *= rule.backoff;
    good = 0;
  } else if (good >= rule.interval) {
    scale *= rule.growth;
    good = 0;
  }
  store_one<double>(loss_scale, 0, fmin(fmax(scale, rule.min), rule.max));
  store_one<int64_t>(good_steps, 0, good);
}

class LossScaleUpdate : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.loss_scale_update";

  explicit LossScaleUpdate(Plan plan)
      : rule_{plan.attrs().f64("growth", 2), plan.attrs().f64("backoff", 0.5), plan.attrs().f64("min", 1),
              plan.attrs().f64("max", 16777216), plan.attrs().i64("interval", 2000)} {
    need_dtype(plan, plan.in(0), "loss_scale", {kF32});
    need_dtype(plan, plan.in(1), "good_steps", {kI32});
    need_dtype(plan, plan.in(2), "finite", {kBool});
    need_ndim(plan, plan.in(0), "loss_scale", 0);
    need_ndim(plan, plan.in(1), "good_steps", 0);
    need_ndim(plan, plan.in(2), "finite", 0);
  }
  void run(Call call) const {
    scale_loss<<<1, 1, 0, stream_of(call)>>>(rule_, side_of(call.in(0)), side_of(call.in(1)), side_of(call.in(2)));
    check_launch(op);
  }

 private:
  LossScaleRule rule_;
};
GESTALT_KERNEL(LossScaleUpdate);

}  // namespace
}  // namespace gestalt::kernels_cuda
