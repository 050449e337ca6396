#include "core/ops/op.h"

namespace gestalt::core {

namespace {

// What attention and its backward share; sinks, bias, keys and seed are inputs from `extra` on.
void check_attention(InferContext& c, size_t extra) {
  c.expect_float(0);
  for (size_t i = 0; i < 3; ++i) {
    c.expect_ndim(i, 3);
    c.expect_dtype(i, c.in(0).dtype);
    c.expect_dim(i, 0, c.in(0).dim(0));
  }
  c.expect_dim(1, 2, c.in(0).dim(2));
  c.expect_dim(2, 1, c.in(1).dim(1));
  c.expect_dtype(3, GESTALT_I32);
  c.expect_ndim(3, 1);
  const int64_t n = c.in(0).dim(1), g = c.in(1).dim(1);
  if (n < 0 || g < 1 || n % g != 0)
    c.error(fmt::format("{} query heads over {} key/value heads, expected a multiple", n, g));
  for (size_t i = extra; i < extra + 2; ++i) {
    if (!c.has(i)) continue;
    c.expect_ndim(i, i == extra ? 1 : 2);
    c.expect_dtype(i, c.in(0).dtype);
    c.expect_dim(i, 0, n);
  }
  if (c.has(extra + 1) && c.in(extra + 1).dim(1) % 2 == 0)
    c.error(fmt::format("bias is {}, expected an odd number of distances", c.shape_text(c.in(extra + 1))));
  const double p = c.attrs().f64("p");
  if (!(p >= 0 && p < 1)) c.error(fmt::format("p is {}, expected 0 <= p < 1", p));
  if ((p > 0) != c.has(extra + 2) || (p > 0) != c.has(extra + 3))
    c.error(fmt::format("p is {}, expected keys and seed where p is above 0 and only there", p));
  if (p > 0) {
    for (size_t i = extra + 2; i < extra + 4; ++i) c.expect_dtype(i, GESTALT_I32);
    c.expect_ndim(extra + 2, 2);
    c.expect_dim(extra + 2, 0, c.in(0).dim(0));
    c.expect_dim(extra + 2, 1, 2);
    c.expect_ndim(extra + 3, 1);
    c.expect_dim(extra + 3, 0, 4);
  }
  if (c.attrs().i64("window") < 0)
    c.error(fmt::format("window is {}, expected 0 (none) or more", c.attrs().i64("window")));
  if (!(c.attrs().f64("softcap") >= 0))
    c.error(fmt::format("softcap is {}, expected 0 (none) or more", c.attrs().f64("softcap")));
}

void infer_attention(InferContext& c) {
  check_attention(c, 4);
  c.out(TensorType(c.in(0).dtype, {c.in(0).dim(0), c.in(0).dim(1), c.in(2).dim(2)}));
  c.out(TensorType(accumulation_dtype(c.in(0).dtype), {c.in(0).dim(0), c.in(0).dim(1)}));
}

void vjp_attention(ComposeContext& c) {
  auto g =
      c.ops("core.attention_bwd",
            {c.in(0), c.in(1), c.in(2), c.in(3), c.out(0), c.out(1), c.grad(0), c.in(4), c.in(5), c.in(6), c.in(7)},
            c.attrs());
  for (size_t i = 0; i < 3; ++i) c.result[i] = g[i];
  for (size_t i = 4; i < 6; ++i)
    if (c.needs(i)) c.result[i] = g[i - 1];
}

void infer_attention_bwd(InferContext& c) {
  check_attention(c, 7);
  c.expect_dtype(4, c.in(0).dtype);
  c.expect_ndim(4, 3);
  c.expect_dim(4, 0, c.in(0).dim(0));
  c.expect_dim(4, 1, c.in(0).dim(1));
  c.expect_dim(4, 2, c.in(2).dim(2));
  c.expect_dtype(5, accumulation_dtype(c.in(0).dtype));
  c.expect_ndim(5, 2);
  c.expect_dim(5, 0, c.in(0).dim(0));
  c.expect_dim(5, 1, c.in(0).dim(1));
  c.expect_same(6, 4);
  for (size_t i = 0; i < 3; ++i) c.out(c.in(i));
  // Without sinks or bias their gradients are empty.
  c.out(c.has(7) ? c.in(7) : TensorType(c.in(0).dtype, {0}));
  c.out(c.has(8) ? c.in(8) : TensorType(c.in(0).dtype, {0, 1}));
}

}  // namespace

void add_attention_ops(OpRegistry& r) {
  add_core_ops(
      r, {{"core.attention(q, k, v, seq_starts, sinks?, bias?, keys?, seed?, *, causal: bool = true, scale: f64 = 0, "
           "window: i64 = 0, softcap: f64 = 0, p: f64 = 0, use: i64 = 0, head0: i64 = 0) -> (o, lse!saved!nograd)",
           "attention", infer_attention, vjp_attention},
          {"core.attention_bwd(q, k, v, seq_starts, o, lse, do, sinks?, bias?, keys?, seed?, *, causal: bool = true, "
           "scale: f64 = 0, window: i64 = 0, softcap: f64 = 0, p: f64 = 0, use: i64 = 0, head0: i64 = 0) -> (dq, dk, "
           "dv, dsinks!acc(f32), dbias!acc(f32))",
           "attention", infer_attention_bwd}});
}

}  // namespace gestalt::core
