#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/norm_rows.h"

// rms_norm over the last dimension: rstd = 1 / sqrt(mean(x^2) + eps), y = x rstd (w + offset). rstd has the shape of x
// without its last dimension.
namespace gestalt::kernels_cpu {
namespace {

// w + offset as an array, in scratch if it is not one already.
template <class C>
const C* weights(View w, double offset, C* scratch) {
  const C* weight = In<C>(w).run(0, w.stride(0), w.dim(0), scratch);
  if (offset == 0) return weight;
  for (int64_t i = 0; i < w.dim(0); ++i) scratch[i] = weight[i] + static_cast<C>(offset);
  return scratch;
}

class RmsNorm : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.rms_norm";

  explicit RmsNorm(Plan plan)
      : slots_(plan.host()), eps_(plan.attrs().f64("eps")), offset_(plan.attrs().f64("offset", 0)) {
    need_norm(plan, plan.in(0), plan.in(1), "w");
    run_ = for_compute_type(plan.in(0).dtype(), &RmsNorm::run_as<float>, &RmsNorm::run_as<double>);
    plan_norm_workspace(plan, slots_, 3);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), w = call.in(1), y = call.out(0), rstd = call.out(1);
    const int64_t n = x.dim(-1), rows = num_rows(x);
    C* scratch = static_cast<C*>(call.workspace());
    const auto row_loop = loops<C>().rms_norm;
    slots_(rows, row_grain(n), [&](int64_t slot, int64_t begin, int64_t end) {
      C* own = scratch + slot * 3 * n;
      const C* weight = weights(w, offset_, own);
      for (int64_t row = begin; row < end; ++row) {
        const int64_t to = offset_of(y, y.ndim() - 1, row);
        const C* from = In<C>(x).run(offset_of(x, x.ndim() - 1, row), x.stride(-1), n, own + n);
        C* out = Out<C>(y).run(to, y.stride(-1), n, own + 2 * n);
        C scale;
        row_loop(from, weight, static_cast<C>(eps_), out, &scale, n);
        Out<C>(y).finish(out, to, y.stride(-1), n);
        Out<C>(rstd).one(offset_of(rstd, rstd.ndim(), row), scale);
      }
    });
  }

  Slots slots_;
  double eps_, offset_;
  void (RmsNorm::*run_)(Call) const;
};
GESTALT_KERNEL(RmsNorm);

class RmsNormBwd : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.rms_norm_bwd";
  static constexpr uint64_t flags = CpuKernel::accumulating;

  explicit RmsNormBwd(Plan plan) : slots_(plan.host()), offset_(plan.attrs().f64("offset", 0)) {
    need_norm(plan, plan.in(0), plan.in(1), "w");
    need_statistics(plan, plan.in(0), plan.in(2), "rstd");
    need_like(plan, plan.in(3), "dy", plan.in(0));
    need_same_shape(plan, plan.in(3), "dy", plan.in(0));
    run_ = for_compute_type(plan.in(0).dtype(), &RmsNormBwd::run_as<float>, &RmsNormBwd::run_as<double>);
    plan_norm_workspace(plan, slots_, 4, 1);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), w = call.in(1), rstd = call.in(2), dy = call.in(3), dx = call.out(0);
    const int64_t n = x.dim(-1), rows = num_rows(x);
    const GradientChunks<C> chunks(call.workspace(), slots_, 4, 1, n, rows);
    const auto row_loop = loops<C>().rms_norm_bwd;
    slots_(chunks.count(), row_grain(n * chunks.kRows), [&](int64_t slot, int64_t first, int64_t last) {
      C* own = chunks.scratch(slot);
      const C* weight = weights(w, offset_, own);
      for (int64_t chunk = first; chunk < last; ++chunk) {
        C* dw = chunks.clear(chunk, 0);
        for (int64_t row = chunks.begin(chunk); row < chunks.end(chunk); ++row) {
          const int64_t to = offset_of(dx, dx.ndim() - 1, row);
          const C* from = In<C>(x).run(offset_of(x, x.ndim() - 1, row), x.stride(-1), n, own + n);
          const C* grad = In<C>(dy).run(offset_of(dy, dy.ndim() - 1, row), dy.stride(-1), n, own + 2 * n);
          C* out = Out<C>(dx).run(to, dx.stride(-1), n, own + 3 * n);
          row_loop(from, weight, In<C>(rstd).one(offset_of(rstd, rstd.ndim(), row)), grad, out, dw, n);
          Out<C>(dx).finish(out, to, dx.stride(-1), n);
        }
      }
    });
    chunks.store(0, call.out(1), call.accumulate(1));
  }

  Slots slots_;
  double offset_;
  void (RmsNormBwd::*run_)(Call) const;
};
GESTALT_KERNEL(RmsNormBwd);

}  // namespace
}  // namespace gestalt::kernels_cpu
