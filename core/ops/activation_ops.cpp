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

// The gradient is an op of (x, dy) with the same attributes.
ComposeFn by(const char* bwd) {
  return [bwd](ComposeContext& c) { c.result[0] = c.op(bwd, {c.in(0), c.grad(0)}, c.attrs()); };
}

void check_attributes(InferContext& c) {
  if (const AttrValue* a = c.attrs().find("approximate"))
    if (const auto& form = std::get<std::string>(*a); form != "tanh" && form != "none")
      c.error(fmt::format("approximate is '{}', expected 'tanh' or 'none'", form));
  if (const AttrValue* a = c.attrs().find("cap"); a && !(std::get<double>(*a) > 0))
    c.error(fmt::format("cap is {}, expected above 0", std::get<double>(*a)));
  if (const AttrValue* a = c.attrs().find("limit"); a && !(std::get<double>(*a) >= 0))
    c.error(fmt::format("limit is {}, expected 0 (none) or more", std::get<double>(*a)));
}

InferFn checked(InferFn infer) {
  return [infer](InferContext& c) {
    check_attributes(c);
    infer(c);
  };
}

TensorType gated(InferContext& c) {
  c.expect_float(0);
  TensorType t = c.in(0);
  const int64_t half = t.ndim == 0 ? 0 : c.dims().div(t.dim(-1), 2);
  if (half == 0) c.error(fmt::format("gate_up is {}, expected an even last dimension", c.shape_text(t)));
  t.shape[static_cast<size_t>(t.ndim - 1)] = half;
  return t;
}

void infer_gated(InferContext& c) { c.out(gated(c)); }

void infer_gated_bwd(InferContext& c) {
  const TensorType t = gated(c);
  if (!(c.in(1) == t)) c.error(fmt::format("dy is {}, expected {}", c.shape_text(c.in(1)), c.shape_text(t)));
  c.out(c.in(0));
}

CoreOp forward(const char* schema, const char* bwd) { return {schema, "activation", checked(infer_same), by(bwd)}; }
CoreOp backward(const char* schema) { return {schema, "activation", checked(infer_bwd)}; }
CoreOp gate(const char* schema, const char* bwd) { return {schema, "activation", checked(infer_gated), by(bwd)}; }
CoreOp gate_bwd(const char* schema) { return {schema, "activation", checked(infer_gated_bwd)}; }

}  // namespace

void add_activation_ops(OpRegistry& r) {
  add_core_ops(
      r, {forward("core.gelu(x, *, approximate: str = \"tanh\") -> (y)", "core.gelu_bwd"),
          backward("core.gelu_bwd(x, dy, *, approximate: str = \"tanh\") -> (dx!inplace(dy))"),
          forward("core.silu(x) -> (y)", "core.silu_bwd"), backward("core.silu_bwd(x, dy) -> (dx!inplace(dy))"),
          forward("core.relu(x) -> (y)", "core.relu_bwd"), backward("core.relu_bwd(x, dy) -> (dx!inplace(dy))"),
          forward("core.relu2(x) -> (y)", "core.relu2_bwd"), backward("core.relu2_bwd(x, dy) -> (dx!inplace(dy))"),
          forward("core.softplus(x) -> (y)", "core.softplus_bwd"),
          backward("core.softplus_bwd(x, dy) -> (dx!inplace(dy))"),
          forward("core.softcap(x, *, cap: f64) -> (y)", "core.softcap_bwd"),
          backward("core.softcap_bwd(x, dy, *, cap: f64) -> (dx!inplace(dy))"),
          gate("core.swiglu(gate_up, *, alpha: f64 = 1, limit: f64 = 0, up_offset: f64 = 0) -> (y)", "core.swiglu_bwd"),
          gate_bwd("core.swiglu_bwd(gate_up, dy, *, alpha: f64 = 1, limit: f64 = 0, up_offset: f64 = 0) -> (dx)"),
          gate("core.geglu(gate_up, *, approximate: str = \"tanh\") -> (y)", "core.geglu_bwd"),
          gate_bwd("core.geglu_bwd(gate_up, dy, *, approximate: str = \"tanh\") -> (dx)"),
          gate("core.reglu(gate_up) -> (y)", "core.reglu_bwd"), gate_bwd("core.reglu_bwd(gate_up, dy) -> (dx)")});
}

}  // namespace gestalt::core
