// Ops that are several others at once: without a kernel of their own they are recorded as those, which also gives their
// gradients.

#include "core/ops/op.h"
#include "core/tensor/dtype.h"

namespace gestalt::core {

namespace {

// The attributes of the same names that `op` has too.
Attrs shared(const Attrs& from, std::initializer_list<const char*> names) {
  Attrs out;
  for (const char* n : names) out.set(n, *from.find(n));
  return out;
}

void infer_residual_norm(InferContext& c) {
  c.expect_float(0);
  c.expect_same(1, 0);
  c.expect_ndim(2, 1);
  if (c.in(0).ndim < 1) c.error("x is a scalar, expected at least one dimension");
  c.expect_dtype(2, c.in(0).dtype);
  c.expect_dim(2, 0, c.in(0).dim(-1));
  if (c.has(3)) c.expect_same(3, 2);
  c.out(c.in(0));
  c.out(c.in(0));
}

void decompose_residual_rms_norm(ComposeContext& c) {
  Value* h = c.op("core.residual_add", {c.in(0), c.in(1)});
  c.result = {c.op("core.rms_norm", {h, c.in(2)}, shared(c.attrs(), {"eps", "offset"})), h};
}

void decompose_residual_layer_norm(ComposeContext& c) {
  Value* h = c.op("core.residual_add", {c.in(0), c.in(1)});
  c.result = {c.op("core.layer_norm", {h, c.in(2), c.in(3)}, shared(c.attrs(), {"eps"})), h};
}

TensorType check_linear(InferContext& c, bool bias) {
  c.expect_float(0);
  c.expect_ndim(0, 2);
  c.expect_ndim(1, 2);
  c.expect_dtype(1, c.in(0).dtype);
  c.expect_dim(1, 1, c.in(0).dim(1));
  if (bias && c.has(2)) {
    c.expect_ndim(2, 1);
    c.expect_dtype(2, c.in(0).dtype);
    c.expect_dim(2, 0, c.in(1).dim(0));
  }
  return TensorType(c.in(0).dtype, {c.in(0).dim(0), c.in(1).dim(0)});
}

void infer_linear_gelu(InferContext& c) { c.out(check_linear(c, true)); }

void decompose_linear_gelu(ComposeContext& c) {
  c.result[0] = c.op("core.gelu", {c.op("core.linear", {c.in(0), c.in(1), c.in(2)})}, c.attrs());
}

void infer_linear_swiglu(InferContext& c) {
  TensorType t = check_linear(c, true);
  if (t.dim(1) % 2 != 0) c.error(fmt::format("w is {}, expected an even number of rows", c.shape_text(c.in(1))));
  t.shape[1] /= 2;
  c.out(t);
}

void decompose_linear_swiglu(ComposeContext& c) {
  c.result[0] = c.op("core.swiglu", {c.op("core.linear", {c.in(0), c.in(1), c.in(2)})}, c.attrs());
}

void infer_linear_cross_entropy(InferContext& c) {
  check_linear(c, false);
  c.expect_integer(2);
  c.expect_dtype(3, GESTALT_F32);
  for (size_t i = 2; i < 4; ++i) {
    c.expect_ndim(i, 1);
    c.expect_dim(i, 0, c.in(0).dim(0));
  }
  const uint32_t dtype = accumulation_dtype(c.in(0).dtype);
  c.out(TensorType(dtype, {}));
  c.out(TensorType(dtype, {c.in(0).dim(0)}));
}

void decompose_linear_cross_entropy(ComposeContext& c) {
  Value* logits = c.op("core.linear", {c.in(0), c.in(1)});
  if (const double cap = c.attrs().f64("softcap"); cap != 0) logits = c.op("core.softcap", {logits}, {{"cap", cap}});
  c.result = c.ops("core.cross_entropy", {logits, c.in(2), c.in(3)}, shared(c.attrs(), {"label_smoothing"}));
}

void infer_gated_rms_norm(InferContext& c) {
  c.expect_float(0);
  c.expect_ndim(0, 2);
  c.expect_same(1, 0);
  c.expect_ndim(2, 1);
  c.expect_dtype(2, c.in(0).dtype);
  c.expect_dim(2, 0, c.in(0).dim(1));
  const int64_t groups = c.attrs().i64("groups");
  if (groups < 1 || c.in(0).dim(1) < 0 || c.in(0).dim(1) % groups != 0)
    c.error(fmt::format("groups is {}, expected a divisor of the width {}", groups, c.dims().text(c.in(0).dim(1))));
  c.out(c.in(0));
}

// rms_norm of each group, times w; gated by silu before, or after where norm_before_gate.
void decompose_gated_rms_norm(ComposeContext& c) {
  const TensorType& x = c.in(0)->type;
  const int64_t groups = c.attrs().i64("groups"), width = x.dim(1) / groups;
  const bool after = c.attrs().boolean("norm_before_gate");
  Value* gate = c.op("core.silu", {c.in(1)});
  Value* y = after ? c.in(0) : c.op("core.mul", {c.in(0), gate});
  Value* ones =
      c.op("core.fill", {},
           {{"shape", std::vector<int64_t>{width}}, {"dtype", std::string(dtype_name(x.dtype))}, {"value", 1.0}});
  y = c.op("core.reshape", {y}, {{"shape", std::vector<int64_t>{x.dim(0), groups, width}}});
  y = c.op("core.rms_norm", {y, ones}, shared(c.attrs(), {"eps"}));
  y = c.op("core.reshape", {y}, {{"shape", std::vector<int64_t>{x.dim(0), x.dim(1)}}});
  y = c.op("core.mul", {y, c.in(2)});
  c.result[0] = after ? c.op("core.mul", {y, gate}) : y;
}

// The quintic iteration of Muon: X <- a X + (b A + c A A) X with A = X X^T, from X / |X|. It brings the singular values
// near 1. (K. Jordan and others, "Muon: An optimizer for hidden layers in neural networks", 2024.)
void decompose_newton_schulz(ComposeContext& c) {
  const TensorType& t = c.in(0)->type;
  const bool tall = t.dim(0) > t.dim(1);
  const std::string dtype(dtype_name(t.dtype));
  auto scale = [&](Value* x, const char* factor) {
    return c.op("core.scale", {x}, {{"factor", c.attrs().f64(factor)}});
  };
  auto turn = [&](Value* x) {
    return tall ? c.op("core.transpose", {x}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}}) : x;
  };
  Value* norm = c.op("core.sqrt", {c.op("core.sum_squares", {c.in(0)})});
  Value* eps = c.op("core.fill", {},
                    {{"shape", std::vector<int64_t>{}},
                     {"dtype", std::string(dtype_name(norm->type.dtype))},
                     {"value", c.attrs().f64("eps")}});
  norm = c.op("core.cast", {c.op("core.add", {norm, eps})}, {{"dtype", dtype}});
  Value* x = turn(c.op("core.div", {c.in(0), norm}));
  for (int64_t i = 0; i < c.attrs().i64("steps"); ++i) {
    Value* a = c.op("core.matmul", {x, x}, {{"trans_b", true}});
    Value* b = c.op("core.add", {scale(a, "b"), scale(c.op("core.matmul", {a, a}), "c")});
    x = c.op("core.add", {scale(x, "a"), c.op("core.matmul", {b, x})});
  }
  c.result[0] = turn(x);
}

void infer_newton_schulz(InferContext& c) {
  c.expect_float(0);
  c.expect_ndim(0, 2);
  if (c.in(0).dim(0) < 0 || c.in(0).dim(1) < 0)
    c.error(fmt::format("x is {}, expected a matrix of fixed size", c.shape_text(c.in(0))));
  if (c.attrs().i64("steps") < 0) c.error(fmt::format("steps is {}, expected 0 or more", c.attrs().i64("steps")));
  c.out(c.in(0));
}

}  // namespace

void add_composite_ops(OpRegistry& r) {
  add_core_ops(
      r,
      {{"core.residual_rms_norm(x, residual, w, *, eps: f64 = 1e-5, offset: f64 = 0) -> (y, h)", "norm",
        infer_residual_norm, nullptr, decompose_residual_rms_norm},
       {"core.residual_layer_norm(x, residual, w, b?, *, eps: f64 = 1e-5) -> (y, h)", "norm", infer_residual_norm,
        nullptr, decompose_residual_layer_norm},
       {"core.gated_rms_norm(x, gate, w, *, eps: f64 = 1e-5, groups: i64 = 1, norm_before_gate: bool = false) -> (y)",
        "norm", infer_gated_rms_norm, nullptr, decompose_gated_rms_norm},
       {"core.linear_gelu(x, w, b?, *, approximate: str = \"tanh\") -> (y)", "matrix", infer_linear_gelu, nullptr,
        decompose_linear_gelu},
       {"core.linear_swiglu(x, w, b?, *, alpha: f64 = 1, limit: f64 = 0, up_offset: f64 = 0) -> (y)", "matrix",
        infer_linear_swiglu, nullptr, decompose_linear_swiglu},
       {"core.linear_cross_entropy(x, w, labels, weights, *, softcap: f64 = 0, label_smoothing: f64 = 0) -> "
        "(loss_sum, lse!nograd)",
        "loss", infer_linear_cross_entropy, nullptr, decompose_linear_cross_entropy},
       {"core.newton_schulz(x, *, steps: i64 = 5, a: f64 = 3.4445, b: f64 = -4.775, c: f64 = 2.0315, eps: f64 = "
        "1e-7) -> (y!nograd)",
        "update", infer_newton_schulz, nullptr, decompose_newton_schulz}});
}

}  // namespace gestalt::core
