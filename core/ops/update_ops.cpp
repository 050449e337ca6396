// Parameter updates over flat vectors. They write their inputs, so they have no gradient.

#include "core/ops/op.h"
#include "gestalt/abi/optimizer.h"

namespace gestalt::core {

namespace {

void expect_scalars(InferContext& c, size_t i) {
  c.expect_dtype(i, GESTALT_F32);
  c.expect_ndim(i, 1);
  c.expect_dim(i, 0, GESTALT_NUM_SCALARS);
}

// param, master?, grad, states...: one length; then segments, segment_hyper, scalars, clip.
void infer_update(InferContext& c) {
  c.expect_float(0);
  c.expect_ndim(0, 1);
  for (size_t i = 1; i < c.num_in() - 4; ++i) {
    if (!c.has(i)) continue;
    c.expect_ndim(i, 1);
    c.expect_dim(i, 0, c.in(0).dim(0));
  }
  const size_t n = c.num_in();
  c.expect_dtype(n - 4, GESTALT_I64);
  c.expect_ndim(n - 4, 2);
  c.expect_dtype(n - 3, GESTALT_F32);
  c.expect_ndim(n - 3, 2);
  c.expect_dim(n - 3, 0, c.in(n - 4).dim(0));
  expect_scalars(c, n - 2);
  c.expect_ndim(n - 1, 0);
}

void infer_norm_clip_scale(InferContext& c) {
  c.expect_ndim(0, 0);
  expect_scalars(c, 1);
  if (c.attrs().f64("max_norm") < 0)
    c.error(fmt::format("max_norm is {}, expected 0 (no clipping) or more", c.attrs().f64("max_norm")));
  c.out(TensorType(GESTALT_F32, {}));
  c.out(TensorType(GESTALT_F32, {}));
}

void infer_ema_update(InferContext& c) {
  c.expect_float(0);
  c.expect_float(1);
  if (!c.in(1).same_shape(c.in(0)))
    c.error(fmt::format("x is {}, expected the shape of average ({})", c.shape_text(c.in(1)), c.shape_text(c.in(0))));
  if (const double d = c.attrs().f64("decay"); !(d >= 0 && d <= 1))
    c.error(fmt::format("decay is {}, expected 0 to 1", d));
}

void infer_loss_scale_update(InferContext& c) {
  c.expect_dtype(0, GESTALT_F32);
  c.expect_dtype(1, GESTALT_I32);
  c.expect_dtype(2, GESTALT_BOOL);
  for (size_t i = 0; i < 3; ++i) c.expect_ndim(i, 0);
  if (!(c.attrs().f64("growth") >= 1) || !(c.attrs().f64("backoff") > 0 && c.attrs().f64("backoff") <= 1))
    c.error(fmt::format("growth is {} and backoff is {}, expected growth >= 1 and 0 < backoff <= 1",
                        c.attrs().f64("growth"), c.attrs().f64("backoff")));
  if (c.attrs().i64("interval") < 1)
    c.error(fmt::format("interval is {}, expected 1 or more", c.attrs().i64("interval")));
}

}  // namespace

void add_update_ops(OpRegistry& r) {
  add_core_ops(
      r, {{"core.adamw_update(param!mut, master?!mut, grad, m!mut, v!mut, segments, segment_hyper, scalars, clip, "
           "*, beta1: f64 = 0.9, beta2: f64 = 0.95, eps: f64 = 1e-8) -> ()",
           "update", infer_update, nullptr, nullptr, nullptr, GESTALT_OP_MUTATES},
          {"core.sgd_update(param!mut, master?!mut, grad, momentum?!mut, segments, segment_hyper, scalars, clip, "
           "*, momentum: f64 = 0, nesterov: bool = false) -> ()",
           "update", infer_update, nullptr, nullptr, nullptr, GESTALT_OP_MUTATES},
          {"core.lion_update(param!mut, master?!mut, grad, m!mut, segments, segment_hyper, scalars, clip, *, "
           "beta1: f64 = 0.9, beta2: f64 = 0.99) -> ()",
           "update", infer_update, nullptr, nullptr, nullptr, GESTALT_OP_MUTATES},
          {"core.ema_update(average!mut, x, *, decay: f64) -> ()", "update", infer_ema_update, nullptr, nullptr,
           nullptr, GESTALT_OP_MUTATES},
          {"core.loss_scale_update(loss_scale!mut, good_steps!mut, finite, *, growth: f64 = 2, backoff: f64 = 0.5, "
           "interval: i64 = 2000, min: f64 = 1, max: f64 = 16777216) -> ()",
           "update", infer_loss_scale_update, nullptr, nullptr, nullptr, GESTALT_OP_MUTATES},
          {"core.norm_clip_scale(sum_squares, scalars, *, max_norm: f64 = 0) -> (clip!nograd, norm!nograd)", "update",
           infer_norm_clip_scale}});
}

}  // namespace gestalt::core
