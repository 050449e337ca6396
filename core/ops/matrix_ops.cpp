#include "core/ops/op.h"

namespace gestalt::core {

namespace {

void infer_matmul(InferContext& c) {
  const TensorType &a = c.in(0), &b = c.in(1);
  c.expect_float(0);
  c.expect_dtype(1, a.dtype);
  if (a.ndim < 2 || b.ndim != a.ndim)
    c.error(fmt::format("a is {} and b is {}, expected two matrices or two stacks of matrices with equal leading "
                        "dimensions", c.shape_text(a), c.shape_text(b)));
  for (int i = 0; i < a.ndim - 2; ++i) c.expect_dim(1, i, a.dim(i));
  const bool ta = c.attrs().boolean("trans_a"), tb = c.attrs().boolean("trans_b");
  const int64_t m = a.dim(ta ? -1 : -2), ka = a.dim(ta ? -2 : -1), kb = b.dim(tb ? -1 : -2), n = b.dim(tb ? -2 : -1);
  if (ka != kb)
    c.error(fmt::format("inner dimensions differ: a is {}{}, b is {}{}", c.shape_text(a), ta ? " transposed" : "",
                        c.shape_text(b), tb ? " transposed" : ""));
  TensorType y = a;
  y.shape[static_cast<size_t>(y.ndim - 2)] = m;
  y.shape[static_cast<size_t>(y.ndim - 1)] = n;
  c.out(y);
}

Value* product(ComposeContext& c, Value* a, Value* b, bool ta, bool tb) {
  return c.op("core.matmul", {a, b}, {{"trans_a", ta}, {"trans_b", tb}});
}

void vjp_matmul(ComposeContext& c) {
  const bool ta = c.attrs().boolean("trans_a"), tb = c.attrs().boolean("trans_b");
  Value *a = c.in(0), *b = c.in(1), *dy = c.grad(0);
  if (c.needs(0)) c.result[0] = ta ? product(c, b, dy, tb, true) : product(c, dy, b, false, !tb);
  if (c.needs(1)) c.result[1] = tb ? product(c, dy, a, true, ta) : product(c, a, dy, !ta, false);
}

void infer_linear(InferContext& c) {
  c.expect_float(0);
  c.expect_ndim(0, 2);
  c.expect_ndim(1, 2);
  c.expect_dtype(1, c.in(0).dtype);
  c.expect_dim(1, 1, c.in(0).dim(1));
  if (c.has(2)) {
    c.expect_ndim(2, 1);
    c.expect_dtype(2, c.in(0).dtype);
    c.expect_dim(2, 0, c.in(1).dim(0));
  }
  c.out(TensorType(c.in(0).dtype, {c.in(0).dim(0), c.in(1).dim(0)}));
}

void vjp_linear(ComposeContext& c) {
  Value* dy = c.grad(0);
  if (c.needs(0)) c.result[0] = product(c, dy, c.in(1), false, false);
  if (c.needs(1)) c.result[1] = product(c, dy, c.in(0), true, false);
  if (c.needs(2)) c.result[2] = c.op("core.sum", {dy}, {{"dims", std::vector<int64_t>{0}}, {"keep", false}});
}

}  // namespace

void add_matrix_ops(OpRegistry& r) {
  add_core_ops(r, {{"core.matmul(a, b, *, trans_a: bool = false, trans_b: bool = false) -> (y!acc(f32))", "matrix",
                    infer_matmul, vjp_matmul},
                   {"core.linear(x, w, b?) -> (y)", "matrix", infer_linear, vjp_linear}});
}

}  // namespace gestalt::core
