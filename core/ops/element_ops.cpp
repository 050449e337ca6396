// Elementwise arithmetic. The second operand may lack leading dimensions of the first, or be a scalar.

#include "core/ops/op.h"
#include "core/tensor/dtype.h"

namespace gestalt::core {

namespace {

void infer_binary(InferContext& c) {
  const TensorType &a = c.in(0), &b = c.in(1);
  bool fits = a.dtype == b.dtype && b.ndim <= a.ndim;
  for (int i = 0; fits && i < b.ndim; ++i) fits = b.dim(i) == a.dim(i + a.ndim - b.ndim);
  if (!fits)
    c.error(fmt::format("{} is {}, expected the dtype of {} and its shape or its last dimensions ({})",
                        c.op().schema.input(1).name, c.shape_text(b), c.op().schema.input(0).name, c.shape_text(a)));
  c.out(a);
}

void infer_same(InferContext& c) { c.out(c.in(0)); }

// Sums a gradient down to the shape of input i, which may lack leading dimensions.
Value* reduce_to(ComposeContext& c, size_t input, Value* g) {
  const int extra = g->type.ndim - c.in(input)->type.ndim;
  if (extra == 0) return g;
  std::vector<int64_t> dims;
  for (int i = 0; i < extra; ++i) dims.push_back(i);
  return c.op("core.sum", {g}, {{"dims", dims}, {"keep", false}});
}

Value* reduce_to_b(ComposeContext& c, Value* g) { return reduce_to(c, 1, g); }

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

Value* mul(ComposeContext& c, Value* a, Value* b) { return c.op("core.mul", {a, b}); }
Value* scale(ComposeContext& c, Value* x, double factor) { return c.op("core.scale", {x}, {{"factor", factor}}); }
Value* zero_like(ComposeContext& c, Value* x) {
  return c.op("core.fill", {},
              {{"shape", std::vector<int64_t>{}}, {"dtype", std::string(dtype_name(x->type.dtype))}, {"value", 0.0}});
}

void infer_float(InferContext& c) {
  c.expect_float(0);
  c.out(c.in(0));
}

// A function of one number with its derivative written in listed ops; `of` makes dx from (c, x, y, dy).
using Slope = Value* (*)(ComposeContext& c, Value* x, Value* y, Value* dy);
CoreOp curve(const char* schema, Slope of) {
  return {schema, "element", infer_float,
          [of](ComposeContext& c) { c.result[0] = of(c, c.in(0), c.out(0), c.grad(0)); }};
}

Value* slope_abs(ComposeContext& c, Value* x, Value*, Value* dy) {
  Value* below = c.op("core.compare", {x, zero_like(c, x)}, {{"relation", std::string("lt")}});
  return c.op("core.where", {below, c.op("core.neg", {dy}), dy});
}
Value* slope_exp(ComposeContext& c, Value*, Value* y, Value* dy) { return mul(c, dy, y); }
Value* slope_log(ComposeContext& c, Value* x, Value*, Value* dy) { return c.op("core.div", {dy, x}); }
Value* slope_sqrt(ComposeContext& c, Value*, Value* y, Value* dy) { return scale(c, c.op("core.div", {dy, y}), 0.5); }
Value* slope_rsqrt(ComposeContext& c, Value* x, Value* y, Value* dy) {
  return scale(c, c.op("core.div", {mul(c, dy, y), x}), -0.5);
}
Value* slope_tanh(ComposeContext& c, Value*, Value* y, Value* dy) {
  return c.op("core.sub", {dy, mul(c, mul(c, dy, y), y)});
}
Value* slope_sigmoid(ComposeContext& c, Value*, Value* y, Value* dy) {
  Value* m = mul(c, dy, y);
  return c.op("core.sub", {m, mul(c, m, y)});
}

void infer_compare(InferContext& c) {
  const std::string& r = c.attrs().str("relation");
  if (r != "eq" && r != "ne" && r != "lt" && r != "le" && r != "gt" && r != "ge")
    c.error(fmt::format("relation is '{}', expected eq, ne, lt, le, gt or ge", r));
  infer_binary(c);
  c.outputs[0].dtype = GESTALT_BOOL;
}

// The result has the shape of the condition; a and b that or its last dimensions.
void infer_where(InferContext& c) {
  c.expect_dtype(0, GESTALT_BOOL);
  c.expect_dtype(2, c.in(1).dtype);
  TensorType y = c.in(0);
  y.dtype = c.in(1).dtype;
  for (size_t i = 1; i < 3; ++i) {
    bool fits = c.in(i).ndim <= y.ndim;
    for (int d = 1; fits && d <= c.in(i).ndim; ++d) fits = c.in(i).dim(-d) == y.dim(-d);
    if (!fits)
      c.error(fmt::format("{} is {}, expected the shape of condition or its last dimensions ({})",
                          c.op().schema.input(i).name, c.shape_text(c.in(i)), c.shape_text(c.in(0))));
  }
  c.out(y);
}

void vjp_where(ComposeContext& c) {
  Value* zero = zero_like(c, c.grad(0));
  if (c.needs(1)) c.result[1] = reduce_to(c, 1, c.op("core.where", {c.in(0), c.grad(0), zero}));
  if (c.needs(2)) c.result[2] = reduce_to(c, 2, c.op("core.where", {c.in(0), zero, c.grad(0)}));
}

void infer_clamp(InferContext& c) {
  c.expect_float(0);
  if (c.num_in() > 1) c.expect_same(1, 0);
  const double low = c.attrs().f64("min"), high = c.attrs().f64("max");
  if (!(low <= high)) c.error(fmt::format("min is {} and max is {}, expected min <= max", low, high));
  c.out(c.in(0));
}

}  // namespace

void add_element_ops(OpRegistry& r) {
  add_core_ops(
      r, {{"core.add(a, b) -> (y!inplace(a)!acc(f32))", "element", infer_binary, vjp_add},
          {"core.sub(a, b) -> (y!inplace(a))", "element", infer_binary, vjp_sub},
          {"core.mul(a, b) -> (y!inplace(a))", "element", infer_binary, vjp_mul},
          {"core.div(a, b) -> (y!inplace(a))", "element", infer_binary, vjp_div},
          // core.add under the names by which plans and reports tell these two apart.
          {"core.residual_add(x, residual) -> (y!inplace(x)!acc(f32))", "element", infer_binary, vjp_add},
          {"core.bias_add(x, b) -> (y!inplace(x)!acc(f32))", "element", infer_binary, vjp_add},
          {"core.neg(x) -> (y!inplace(x))", "element", infer_same,
           [](ComposeContext& c) { c.result[0] = c.op("core.neg", {c.grad(0)}); }},
          {"core.scale(x, *, factor: f64) -> (y!inplace(x))", "element", infer_same,
           [](ComposeContext& c) { c.result[0] = c.op("core.scale", {c.grad(0)}, c.attrs()); }},
          curve("core.abs(x) -> (y!inplace(x))", slope_abs),
          curve("core.exp(x) -> (y!inplace(x))", slope_exp),
          curve("core.log(x) -> (y!inplace(x))", slope_log),
          curve("core.sqrt(x) -> (y!inplace(x))", slope_sqrt),
          curve("core.rsqrt(x) -> (y!inplace(x))", slope_rsqrt),
          curve("core.tanh(x) -> (y!inplace(x))", slope_tanh),
          curve("core.sigmoid(x) -> (y!inplace(x))", slope_sigmoid),
          {"core.compare(a, b, *, relation: str) -> (y!nograd)", "element", infer_compare},
          {"core.where(condition, a, b) -> (y)", "element", infer_where, vjp_where},
          {"core.clamp(x, *, min: f64 = -inf, max: f64 = inf) -> (y!inplace(x))", "element", infer_clamp,
           [](ComposeContext& c) {
             c.result[0] = c.op("core.clamp_bwd", {c.in(0), c.grad(0)}, c.attrs());
           }},
          {"core.clamp_bwd(x, dy, *, min: f64 = -inf, max: f64 = inf) -> (dx!inplace(dy))", "element", infer_clamp}});
}

}  // namespace gestalt::core
