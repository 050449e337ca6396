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

}  // namespace

void add_update_ops(OpRegistry& r) {
  add_core_ops(r, {{"core.adamw_update(param!mut, master?!mut, grad, m!mut, v!mut, segments, segment_hyper, scalars, clip, "
                    "*, beta1: f64 = 0.9, beta2: f64 = 0.95, eps: f64 = 1e-8) -> ()",
                    "update", infer_update, nullptr, nullptr, nullptr, GESTALT_OP_MUTATES},
                   {"core.sgd_update(param!mut, master?!mut, grad, momentum?!mut, segments, segment_hyper, scalars, clip, "
                    "*, momentum: f64 = 0, nesterov: bool = false) -> ()",
                    "update", infer_update, nullptr, nullptr, nullptr, GESTALT_OP_MUTATES},
                   {"core.norm_clip_scale(sum_squares, scalars, *, max_norm: f64 = 0) -> (clip!nograd, norm!nograd)",
                    "update", infer_norm_clip_scale}});
}

}  // namespace gestalt::core
