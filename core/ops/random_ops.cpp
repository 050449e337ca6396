#include "core/ops/op.h"

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

}  // namespace

void add_random_ops(OpRegistry& r) {
  // The mask is a function of the keys, so the backward is the same op on the gradient.
  add_core_ops(r, {{"core.dropout(x, keys, seed, *, p: f64, use: i64, column0: i64 = 0) -> (y!inplace(x))", "dropout",
                    infer_dropout,
                    [](ComposeContext& c) {
                      c.result[0] = c.op("core.dropout", {c.grad(0), c.in(1), c.in(2)}, c.attrs());
                    },
                    nullptr, nullptr, GESTALT_OP_PURE | GESTALT_OP_RANDOM}});
}

}  // namespace gestalt::core
