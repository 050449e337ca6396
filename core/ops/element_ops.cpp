// Elementwise arithmetic. The second operand may lack leading dimensions of the first, or be a scalar.

#include "core/ops/op.h"

namespace gestalt::core {

namespace {

void infer_binary(InferContext& c) {
  const TensorType &a = c.in(0), &b = c.in(1);
  bool fits = a.dtype == b.dtype && b.ndim <= a.ndim;
  for (int i = 0; fits && i < b.ndim; ++i) fits = b.dim(i) == a.dim(i + a.ndim - b.ndim);
  if (!fits)
    c.error(fmt::format("b is {}, expected the dtype of a and its shape or its last dimensions ({})", c.shape_text(b),
                        c.shape_text(a)));
  c.out(a);
}

void infer_same(InferContext& c) { c.out(c.in(0)); }

// Sums a gradient of a's shape down to b's.
Value* reduce_to_b(ComposeContext& c, Value* g) {
  const int extra = g->type.ndim - c.in(1)->type.ndim;
  if (extra == 0) return g;
  std::vector<int64_t> dims;
  for (int i = 0; i < extra; ++i) dims.push_back(i);
  return c.op("core.sum", {g}, {{"dims", dims}, {"keep", false}});
}

void vjp_add(ComposeContext& c) {
  if (c.needs(0)) c.result[0] = c.grad(0);
  if (c.needs(1)) c.result[1] = reduce_to_b(c, c.grad(0));
}

void vjp_sub(ComposeContext& c) {
  if (c.needs(0)) c.result[0] = c.grad(0);
  if (c.needs(1)) c.result[1] = c.op("core.neg", {reduce_to_b(c, c.grad(0))});
}

void vjp_mul(ComposeContext& c) {
  if (c.needs(0)) c.result[0] = c.op("core.mul", {c.grad(0), c.in(1)});
  if (c.needs(1)) c.result[1] = reduce_to_b(c, c.op("core.mul", {c.grad(0), c.in(0)}));
}

// y = a / b: da = dy / b, db = -dy y / b.
void vjp_div(ComposeContext& c) {
  Value* da = c.op("core.div", {c.grad(0), c.in(1)});
  if (c.needs(0)) c.result[0] = da;
  if (c.needs(1)) c.result[1] = c.op("core.neg", {reduce_to_b(c, c.op("core.mul", {da, c.out(0)}))});
}

}  // namespace

void add_element_ops(OpRegistry& r) {
  add_core_ops(
      r, {{"core.add(a, b) -> (y!inplace(a)!acc(f32))", "element", infer_binary, vjp_add},
          {"core.sub(a, b) -> (y!inplace(a))", "element", infer_binary, vjp_sub},
          {"core.mul(a, b) -> (y!inplace(a))", "element", infer_binary, vjp_mul},
          {"core.div(a, b) -> (y!inplace(a))", "element", infer_binary, vjp_div},
          {"core.neg(x) -> (y!inplace(x))", "element", infer_same,
           [](ComposeContext& c) { c.result[0] = c.op("core.neg", {c.grad(0)}); }},
          {"core.scale(x, *, factor: f64) -> (y!inplace(x))", "element", infer_same,
           [](ComposeContext& c) { c.result[0] = c.op("core.scale", {c.grad(0)}, c.attrs()); }}});
}

}  // namespace gestalt::core
