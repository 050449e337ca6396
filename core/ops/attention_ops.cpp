#include "core/ops/op.h"

namespace gestalt::core {

namespace {

void infer_rotary(InferContext& c) {
  c.expect_float(0);
  c.expect_ndim(0, 3);
  c.expect_integer(1);
  c.expect_ndim(1, 1);
  c.expect_dim(1, 0, c.in(0).dim(0));
  const int64_t dims = c.attrs().i64("dims"), d = c.in(0).dim(2), rotated = dims == 0 ? d : dims;
  if (rotated < 2 || rotated > d || rotated % 2 != 0)
    c.error(fmt::format("dims is {}, expected 0 or an even number up to the head size {}", dims, d));
  c.out(c.in(0));
}

// A rotation's transpose is the rotation back.
void vjp_rotary(ComposeContext& c) {
  Attrs a = c.attrs();
  a.set("inverse", !a.boolean("inverse"));
  c.result[0] = c.op("core.rotary", {c.grad(0), c.in(1)}, a);
}

void check_attention(InferContext& c) {
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
}

void infer_attention(InferContext& c) {
  check_attention(c);
  c.out(TensorType(c.in(0).dtype, {c.in(0).dim(0), c.in(0).dim(1), c.in(2).dim(2)}));
  c.out(TensorType(accumulation_dtype(c.in(0).dtype), {c.in(0).dim(0), c.in(0).dim(1)}));
}

void vjp_attention(ComposeContext& c) {
  auto g = c.ops("core.attention_bwd", {c.in(0), c.in(1), c.in(2), c.in(3), c.out(0), c.out(1), c.grad(0)}, c.attrs());
  for (size_t i = 0; i < 3; ++i) c.result[i] = g[i];
}

void infer_attention_bwd(InferContext& c) {
  check_attention(c);
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
}

}  // namespace

void add_attention_ops(OpRegistry& r) {
  add_core_ops(
      r, {{"core.rotary(x, positions, *, theta: f64 = 1e4, dims: i64 = 0, interleaved: bool = false, inverse: bool = "
           "false) -> (y!inplace(x))",
           "position", infer_rotary, vjp_rotary},
          {"core.attention(q, k, v, seq_starts, *, causal: bool = true, scale: f64 = 0) -> (o, lse!saved!nograd)",
           "attention", infer_attention, vjp_attention},
          {"core.attention_bwd(q, k, v, seq_starts, o, lse, do, *, causal: bool = true, scale: f64 = 0) -> (dq, dk, dv)",
           "attention", infer_attention_bwd}});
}

}  // namespace gestalt::core
