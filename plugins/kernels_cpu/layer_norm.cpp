#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/norm_rows.h"

// layer_norm over the last dimension: rstd = 1 / sqrt(variance + eps), y = (x - mean) rstd w + b. mean and rstd have
// the shape of x without its last dimension.
namespace gestalt::kernels_cpu {
namespace {

class LayerNorm : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.layer_norm";

  explicit LayerNorm(Plan plan) : slots_(plan.host()), eps_(plan.attrs().f64("eps")), has_bias_(plan.has_in(2)) {
    need_norm(plan, plan.in(0), plan.in(1), "w");
    if (has_bias_) need_norm(plan, plan.in(0), plan.in(2), "b");
    run_ = for_compute_type(plan.in(0).dtype(), &LayerNorm::run_as<float>, &LayerNorm::run_as<double>);
    plan_norm_workspace(plan, slots_, 4);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), w = call.in(1), y = call.out(0), mean = call.out(1), rstd = call.out(2);
    const int64_t n = x.dim(-1), rows = num_rows(x);
    C* scratch = static_cast<C*>(call.workspace());
    const auto row_loop = loops<C>().layer_norm;
    slots_(rows, row_grain(n), [&](int64_t slot, int64_t begin, int64_t end) {
      C* own = scratch + slot * 4 * n;
      const C* weight = In<C>(w).run(0, w.stride(0), n, own);
      const C* bias = has_bias_ ? In<C>(call.in(2)).run(0, call.in(2).stride(0), n, own + n) : nullptr;
      for (int64_t row = begin; row < end; ++row) {
        const int64_t to = offset_of(y, y.ndim() - 1, row);
        const C* from = In<C>(x).run(offset_of(x, x.ndim() - 1, row), x.stride(-1), n, own + 2 * n);
        C* out = Out<C>(y).run(to, y.stride(-1), n, own + 3 * n);
        C middle, scale;
        row_loop(from, weight, bias, static_cast<C>(eps_), out, &middle, &scale, n);
        Out<C>(y).finish(out, to, y.stride(-1), n);
        Out<C>(mean).one(offset_of(mean, mean.ndim(), row), middle);
        Out<C>(rstd).one(offset_of(rstd, rstd.ndim(), row), scale);
      }
    });
  }

  Slots slots_;
  double eps_;
  bool has_bias_;
  void (LayerNorm::*run_)(Call) const;
};
GESTALT_KERNEL(LayerNorm);

class LayerNormBwd : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.layer_norm_bwd";
  static constexpr uint64_t flags = CpuKernel::accumulating;

  explicit LayerNormBwd(Plan plan) : slots_(plan.host()) {
    need_norm(plan, plan.in(0), plan.in(1), "w");
    need_statistics(plan, plan.in(0), plan.in(2), "mean");
    need_statistics(plan, plan.in(0), plan.in(3), "rstd");
    need_like(plan, plan.in(4), "dy", plan.in(0));
    need_same_shape(plan, plan.in(4), "dy", plan.in(0));
    run_ = for_compute_type(plan.in(0).dtype(), &LayerNormBwd::run_as<float>, &LayerNormBwd::run_as<double>);
    plan_norm_workspace(plan, slots_, 4, 2);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), w = call.in(1), mean = call.in(2), rstd = call.in(3), dy = call.in(4), dx = call.out(0);
    const int64_t n = x.dim(-1), rows = num_rows(x);
    const GradientChunks<C> chunks(call.workspace(), slots_, 4, 2, n, rows);
    const auto row_loop = loops<C>().layer_norm_bwd;
    slots_(chunks.count(), row_grain(n * chunks.kRows), [&](int64_t slot, int64_t first, int64_t last) {
      C* own = chunks.scratch(slot);
      const C* weight = In<C>(w).run(0, w.stride(0), n, own);
      for (int64_t chunk = first; chunk < last; ++chunk) {
        C* dw = chunks.clear(chunk, 0);
        C* db = chunks.clear(chunk, 1);
        for (int64_t row = chunks.begin(chunk); row < chunks.end(chunk); ++row) {
          const int64_t to = offset_of(dx, dx.ndim() - 1, row);
          const C* from = In<C>(x).run(offset_of(x, x.ndim() - 1, row), x.stride(-1), n, own + n);
          const C* grad = In<C>(dy).run(offset_of(dy, dy.ndim() - 1, row), dy.stride(-1), n, own + 2 * n);
          C* out = Out<C>(dx).run(to, dx.stride(-1), n, own + 3 * n);
          row_loop(from, weight, In<C>(mean).one(offset_of(mean, mean.ndim(), row)),
                   In<C>(rstd).one(offset_of(rstd, rstd.ndim(), row)), grad, out, dw, db, n);
          Out<C>(dx).finish(out, to, dx.stride(-1), n);
        }
      }
    });
    chunks.store(0, call.out(1), call.accumulate(1));
    if (has_bias_gradient(call)) chunks.store(1, call.out(2), call.accumulate(2));
  }
  static bool has_bias_gradient(Call call) { return static_cast<bool>(call.out(2)); }

  Slots slots_;
  void (LayerNormBwd::*run_)(Call) const;
};
GESTALT_KERNEL(LayerNormBwd);

}  // namespace
}  // namespace gestalt::kernels_cpu
