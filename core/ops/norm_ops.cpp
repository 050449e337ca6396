// Normalisation over the last dimension. rstd and mean have the shape of x without it.

#include "core/ops/op.h"

namespace gestalt::core {

namespace {

TensorType statistics(const TensorType& x) {
  TensorType t = x;
  t.dtype = accumulation_dtype(x.dtype);
  t.ndim -= 1;
  t.shape[static_cast<size_t>(t.ndim)] = 0;
  return t;
}

void expect_statistics(InferContext& c, size_t i) {
  const TensorType t = statistics(c.in(0));
  if (!(c.in(i) == t))
    c.error(fmt::format("{} is {}, expected {}: x without its last dimension", c.op().schema.input(i).name,
                        c.shape_text(c.in(i)), c.shape_text(t)));
}

void check_x_and_w(InferContext& c) {
  c.expect_float(0);
  if (c.in(0).ndim < 1) c.error("x is a scalar, expected at least one dimension");
  c.expect_ndim(1, 1);
  c.expect_dtype(1, c.in(0).dtype);
  c.expect_dim(1, 0, c.in(0).dim(-1));
}

void infer_rms_norm(InferContext& c) {
  check_x_and_w(c);
  c.out(c.in(0));
  c.out(statistics(c.in(0)));
}

void infer_rms_norm_bwd(InferContext& c) {
  check_x_and_w(c);
  expect_statistics(c, 2);
  c.expect_same(3, 0);
  c.out(c.in(0));
  c.out(c.in(1));
}

void vjp_rms_norm(ComposeContext& c) {
  auto g = c.ops("core.rms_norm_bwd", {c.in(0), c.in(1), c.out(1), c.grad(0)}, {{"offset", c.attrs().f64("offset")}});
  c.result[0] = g[0];
  c.result[1] = g[1];
}

void infer_layer_norm(InferContext& c) {
  check_x_and_w(c);
  if (c.has(2)) c.expect_same(2, 1);
  c.out(c.in(0));
  c.out(statistics(c.in(0)));
  c.out(statistics(c.in(0)));
}

void infer_layer_norm_bwd(InferContext& c) {
  check_x_and_w(c);
  expect_statistics(c, 2);
  expect_statistics(c, 3);
  c.expect_same(4, 0);
  c.out(c.in(0));
  c.out(c.in(1));
  c.out(c.in(1));
}

void vjp_layer_norm(ComposeContext& c) {
  auto g = c.ops("core.layer_norm_bwd", {c.in(0), c.in(1), c.out(1), c.out(2), c.grad(0)});
  c.result[0] = g[0];
  c.result[1] = g[1];
  if (c.needs(2)) c.result[2] = g[2];
}

}  // namespace

void add_norm_ops(OpRegistry& r) {
  add_core_ops(
      r,
      {{"core.rms_norm(x, w, *, eps: f64 = 1e-5, offset: f64 = 0) -> (y, rstd!saved!nograd)", "norm", infer_rms_norm,
        vjp_rms_norm},
       {"core.rms_norm_bwd(x, w, rstd, dy, *, offset: f64 = 0) -> (dx, dw!acc(f32))", "norm", infer_rms_norm_bwd},
       {"core.layer_norm(x, w, b?, *, eps: f64 = 1e-5) -> (y, mean!saved!nograd, rstd!saved!nograd)", "norm",
        infer_layer_norm, vjp_layer_norm},
       {"core.layer_norm_bwd(x, w, mean, rstd, dy) -> (dx, dw!acc(f32), db!acc(f32))", "norm", infer_layer_norm_bwd}});
}

}  // namespace gestalt::core
