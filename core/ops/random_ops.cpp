#include "core/ops/op.h"
#include "core/tensor/dtype.h"

namespace gestalt::core {

namespace {

void infer_dropout(InferContext& c) {
  c.expect_float(0);
  c.expect_ndim(0, 2);
  c.expect_dtype(1, GESTALT_I32);
  c.expect_ndim(1, 2);
  c.expect_dim(1, 0, c.in(0).dim(0));
  c.expect_dim(1, 1, 2);
  c.expect_dtype(2, GESTALT_I32);
  const double p = c.attrs().f64("p");
  if (!(p >= 0 && p < 1)) c.error(fmt::format("p is {}, expected 0 <= p < 1", p));
  c.out(c.in(0));
}

void infer_drawn(InferContext& c) {
  c.expect_dtype(0, GESTALT_I32);
  c.expect_ndim(0, 1);
  c.expect_dim(0, 0, 4);
  TensorType t;
  t.dtype = parse_dtype(c.attrs().str("dtype"));
  if (!is_float(t.dtype)) c.error(fmt::format("dtype is {}, expected a float", c.attrs().str("dtype")));
  for (int64_t d : c.attrs().i64_list("shape")) {
    if (t.ndim == GESTALT_MAX_NDIM) c.error("shape has more than 8 dimensions");
    t.shape[static_cast<size_t>(t.ndim++)] = d;
  }
  c.out(t);
}

}  // namespace

void add_random_ops(OpRegistry& r) {
  // The mask is a function of the keys, so the backward is the same op on the gradient.
  add_core_ops(r,
               {{"core.dropout(x, keys, seed, *, p: f64, use: i64, column0: i64 = 0) -> (y!inplace(x))", "dropout",
                 infer_dropout,
                 [](ComposeContext& c) {
                   c.result[0] = c.op("core.dropout", {c.grad(0), c.in(1), c.in(2)}, c.attrs());
                 },
                 nullptr, nullptr, GESTALT_OP_PURE | GESTALT_OP_RANDOM},
                {"core.uniform(seed, *, shape: i64[], use: i64, low: f64 = 0, high: f64 = 1, dtype: str = \"f32\") -> "
                 "(y!nograd)",
                 "random", infer_drawn, nullptr, nullptr, nullptr, GESTALT_OP_PURE | GESTALT_OP_RANDOM},
                {"core.normal(seed, *, shape: i64[], use: i64, mean: f64 = 0, std: f64 = 1, dtype: str = \"f32\") -> "
                 "(y!nograd)",
                 "random", infer_drawn, nullptr, nullptr, nullptr, GESTALT_OP_PURE | GESTALT_OP_RANDOM}});
}

}  // namespace gestalt::core
