// Where tokens are: rotations of heads, and biases of attention by distance.

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

void check_buckets(InferContext& c, int64_t buckets) {
  const int64_t least = c.attrs().boolean("bidirectional") ? 4 : 2, far = c.attrs().i64("max_distance");
  if (buckets < least || buckets % least != 0)
    c.error(fmt::format("{} buckets, expected a multiple of {}", buckets, least));
  const int64_t exact = buckets / (least == 4 ? 4 : 2);
  if (far <= exact) c.error(fmt::format("max_distance is {}, expected above {}, the distances told apart", far, exact));
}

int64_t distances(InferContext& c) {
  const int64_t reach = c.attrs().i64("reach");
  if (reach < 0) c.error(fmt::format("reach is {}, expected 0 or more", reach));
  return 2 * reach + 1;
}

void infer_relative_bias(InferContext& c) {
  c.expect_float(0);
  c.expect_ndim(0, 2);
  check_buckets(c, c.in(0).dim(0));
  c.out(TensorType(c.in(0).dtype, {c.in(0).dim(1), distances(c)}));
}

void infer_relative_bias_bwd(InferContext& c) {
  c.expect_float(0);
  c.expect_ndim(0, 2);
  check_buckets(c, c.attrs().i64("buckets"));
  if (c.in(0).dim(1) < 1 || c.in(0).dim(1) % 2 == 0)
    c.error(fmt::format("dbias is {}, expected an odd number of distances", c.shape_text(c.in(0))));
  c.out(TensorType(c.in(0).dtype, {c.attrs().i64("buckets"), c.in(0).dim(0)}));
}

void vjp_relative_bias(ComposeContext& c) {
  c.result[0] = c.op("core.relative_bias_bwd", {c.grad(0)},
                     {{"buckets", c.in(0)->type.dim(0)},
                      {"max_distance", c.attrs().i64("max_distance")},
                      {"bidirectional", c.attrs().boolean("bidirectional")}});
}

void infer_alibi(InferContext& c) {
  const int64_t heads = c.attrs().i64("heads");
  if (heads < 1) c.error(fmt::format("heads is {}, expected 1 or more", heads));
  c.out(TensorType(parse_dtype(c.attrs().str("dtype")), {heads, distances(c)}));
  if (!is_float(c.outputs[0].dtype)) c.error(fmt::format("dtype is {}, expected a float", c.attrs().str("dtype")));
}

}  // namespace

void add_position_ops(OpRegistry& r) {
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
       {"core.relative_bias(table, *, reach: i64, max_distance: i64 = 128, bidirectional: bool = false) -> (bias)",
        "position", infer_relative_bias, vjp_relative_bias},
       {"core.relative_bias_bwd(dbias, *, buckets: i64, max_distance: i64 = 128, bidirectional: bool = false) -> "
        "(dtable!acc(f32))",
        "position", infer_relative_bias_bwd},
       {"core.alibi(*, heads: i64, reach: i64, dtype: str = \"f32\") -> (bias!nograd)", "position", infer_alibi}});
}

}  // namespace gestalt::core
