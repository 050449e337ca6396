#include "plugins/kernels_cuda/update.cuh"

namespace gestalt::kernels_cuda {
namespace {

// With g = clip grad: m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
// param -= lr lr_scale (m' / (sqrt(v') + eps) + decay param), where m' = m / (1 - beta1^step) and v' likewise.
// A negative clip means a gradient that is not finite: nothing changes.
struct AdamwRule {
  double beta1, beta2, eps;
  __device__ void prepare(StepNumbers& s) const {
    s.scale1 = 1 / (1 - pow(beta1, s.step));
    s.scale2 = 1 / sqrt(1 - pow(beta2, s.step));
  }
  template <class C>
  __device__ __forceinline__ void chunk(const StepNumbers& s, double decay, double lr_scale, C (&grad)[kChunk],
                                        C (&weight)[kChunk], C (&state)[2][kChunk]) const {
    const C clip = static_cast<C>(s.clip), b1 = static_cast<C>(beta1), b2 = static_cast<C>(beta2);
    const C rest1 = static_cast<C>(1 - beta1), rest2 = static_cast<C>(1 - beta2), tiny = static_cast<C>(eps);
    const C step = static_cast<C>(s.lr * lr_scale * s.scale1);
    const C inv = static_cast<C>(s.scale2), shrink = static_cast<C>(s.lr * lr_scale * decay);
#pragma unroll
    for (int j = 0; j < kChunk; ++j) {
      const C g = grad[j] * clip;
      const C m = b1 * state[0][j] + rest1 * g, v = b2 * state[1][j] + rest2 * g * g;
      state[0][j] = m;
      state[1][j] = v;
      weight[j] -= step * m / (sqrt(v) * inv + tiny) + shrink * weight[j];
    }
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
  __device__ void prepare(StepNumbers&) const {}
  template <class C>
  __device__ __forceinline__ void chunk(const StepNumbers& s, double decay, double lr_scale, C (&grad)[kChunk],
                                        C (&weight)[kChunk], C (&state)[1][kChunk]) const {
    const C clip = static_cast<C>(s.clip), rate = static_cast<C>(s.lr * lr_scale), shrink = static_cast<C>(decay);
    const C keep = static_cast<C>(momentum);
#pragma unroll
    for (int j = 0; j < kChunk; ++j) {
      const C g = grad[j] * clip + shrink * weight[j];
      C d = g;
      if (buffer) {
        state[0][j] = keep * state[0][j] + g;
        d = nesterov ? g + keep * state[0][j] : state[0][j];
      }
      weight[j] -= rate * d;
    }
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
  __device__ void prepare(StepNumbers&) const {}
  template <class C>
  __device__ __forceinline__ void chunk(const StepNumbers& s, double decay, double lr_scale, C (&grad)[kChunk],
                                        C (&weight)[kChunk], C (&state)[1][kChunk]) const {
    const C clip = static_cast<C>(s.clip), rate = static_cast<C>(s.lr * lr_scale), shrink = static_cast<C>(decay);
    const C b1 = static_cast<C>(beta1), b2 = static_cast<C>(beta2);
    const C rest1 = static_cast<C>(1 - beta1), rest2 = static_cast<C>(1 - beta2);
#pragma unroll
    for (int j = 0; j < kChunk; ++j) {
      const C g = clip * grad[j], mixed = b1 * state[0][j] + rest1 * g;
      const C sign = mixed > C(0) ? C(1) : mixed < C(0) ? C(-1) : C(0);
      weight[j] -= rate * (sign + shrink * weight[j]);
      state[0][j] = b2 * state[0][j] + rest2 * g;
    }
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
