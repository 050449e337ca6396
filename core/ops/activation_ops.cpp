#include "core/ops/op.h"

namespace gestalt::core {

namespace {

void infer_same(InferContext& c) {
  c.expect_float(0);
  c.out(c.in(0));
}

void infer_bwd(InferContext& c) {
  c.expect_float(0);
  c.expect_same(1, 0);
  c.out(c.in(0));
}

ComposeFn by(const char* bwd) {
  return [bwd](ComposeContext& c) { c.result[0] = c.op(bwd, {c.in(0), c.grad(0)}, c.attrs()); };
}

void check_gelu(InferContext& c) {
  const std::string& a = c.attrs().str("approximate");
  if (a != "tanh" && a != "none") c.error(fmt::format("approximate is '{}', expected 'tanh' or 'none'", a));
}

TensorType gated(InferContext& c) {
  c.expect_float(0);
  TensorType t = c.in(0);
  const int64_t half = t.ndim == 0 ? 0 : c.dims().div(t.dim(-1), 2);
  if (half == 0) c.error(fmt::format("gate_up is {}, expected an even last dimension", c.shape_text(t)));
  t.shape[static_cast<size_t>(t.ndim - 1)] = half;
  return t;
}

}  // namespace

void add_activation_ops(OpRegistry& r) {
  add_core_ops(
      r,
      {{"core.gelu(x, *, approximate: str = \"tanh\") -> (y)", "activation",
        [](InferContext& c) {
          check_gelu(c);
          infer_same(c);
        },
        by("core.gelu_bwd")},
       {"core.gelu_bwd(x, dy, *, approximate: str = \"tanh\") -> (dx!inplace(dy))", "activation",
        [](InferContext& c) {
          check_gelu(c);
          infer_bwd(c);
        }},
       {"core.silu(x) -> (y)", "activation", infer_same, by("core.silu_bwd")},
       {"core.silu_bwd(x, dy) -> (dx!inplace(dy))", "activation", infer_bwd},
       {"core.relu(x) -> (y)", "activation", infer_same, by("core.relu_bwd")},
       {"core.relu_bwd(x, dy) -> (dx!inplace(dy))", "activation", infer_bwd},
       {"core.swiglu(gate_up) -> (y)", "activation", [](InferContext& c) { c.out(gated(c)); }, by("core.swiglu_bwd")},
       {"core.swiglu_bwd(gate_up, dy) -> (dx)", "activation", [](InferContext& c) {
          const TensorType t = gated(c);
          if (!(c.in(1) == t))
            c.error(fmt::format("dy is {}, expected {}", c.shape_text(c.in(1)), c.shape_text(t)));
          c.out(c.in(0));
        }}});
}

}  // namespace gestalt::core
