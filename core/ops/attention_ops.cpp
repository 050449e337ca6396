#include "core/ops/op.h"
#include "core/tensor/dtype.h"

namespace gestalt::core {

namespace {

// Rotations come from the positions or from a table of cosines and sines, one row a token.
void infer_rotary(InferContext& c) {
  c.expect_float(0);
  c.expect_ndim(0, 3);
  if (c.has(1) == c.has(2)) c.error("expected either positions or a table");
  const size_t by = c.has(1) ? 1 : 2;
  c.expect_ndim(by, by == 1 ? 1 : 2);
  c.expect_dim(by, 0, c.in(0).dim(0));
  int64_t dims = c.attrs().i64("dims");
  if (by == 1) {
    c.expect_integer(1);
  } else {
    c.expect_dtype(2, accumulation_dtype(c.in(0).dtype));
    if (dims != 0) c.expect_dim(2, 1, dims);
    dims = c.in(2).dim(1);
  }
  const int64_t d = c.in(0).dim(2), rotated = dims == 0 ? d : dims;
  if (rotated < 2 || rotated > d || rotated % 2 != 0)
    c.error(fmt::format("dims is {}, expected 0 or an even number up to the head size {}", dims, d));
  c.out(c.in(0));
}

// A rotation's transpose is the rotation back.
void vjp_rotary(ComposeContext& c) {
  Attrs a = c.attrs();
  a.set("inverse", !a.boolean("inverse"));
  c.result[0] = c.op("core.rotary", {c.grad(0), c.in(1), c.in(2)}, a);
}

void infer_rotary_table(InferContext& c) {
  c.expect_integer(0);
  c.expect_ndim(0, 1);
  const int64_t dims = c.attrs().i64("dims");
  if (dims < 2 || dims % 2 != 0) c.error(fmt::format("dims is {}, expected an even number from 2 on", dims));
  const uint32_t dtype = parse_dtype(c.attrs().str("dtype"));
  if (dtype != GESTALT_F32 && dtype != GESTALT_F64)
    c.error(fmt::format("dtype is {}, expected f32 or f64", c.attrs().str("dtype")));
  c.out(TensorType(dtype, {c.in(0).dim(0), dims}));
}

// What attention and its backward share; sinks and bias are inputs `extra` and `extra` + 1.
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
  auto g = c.ops("core.attention_bwd",
                 {c.in(0), c.in(1), c.in(2), c.in(3), c.out(0), c.out(1), c.grad(0), c.in(4), c.in(5)}, c.attrs());
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
      r,
      {{"core.rotary(x, positions?, table?, *, theta: f64 = 1e4, dims: i64 = 0, interleaved: bool = false, inverse: "
        "bool = false) -> (y!inplace(x))",
        "position", infer_rotary, vjp_rotary},
       {"core.rotary_table(positions, *, kind: str = \"default\", dims: i64, theta: f64 = 1e4, factor: f64 = 1, "
        "original_max: i64 = 0, low_freq_factor: f64 = 1, high_freq_factor: f64 = 4, beta_fast: f64 = 32, beta_slow: "
        "f64 = 1, truncate: bool = true, mscale: f64 = 0, mscale_all_dim: f64 = 0, attention_factor: f64 = 0, "
        "short_factor: f64[] = [], long_factor: f64[] = [], dtype: str = \"f32\") -> (table!nograd)",
        "position", infer_rotary_table},
       {"core.attention(q, k, v, seq_starts, sinks?, bias?, *, causal: bool = true, scale: f64 = 0, window: i64 = 0, "
        "softcap: f64 = 0) -> (o, lse!saved!nograd)",
        "attention", infer_attention, vjp_attention},
       {"core.attention_bwd(q, k, v, seq_starts, o, lse, do, sinks?, bias?, *, causal: bool = true, scale: f64 = 0, "
        "window: i64 = 0, softcap: f64 = 0) -> (dq, dk, dv, dsinks!acc(f32), dbias!acc(f32))",
        "attention", infer_attention_bwd}});
}

}  // namespace gestalt::core
