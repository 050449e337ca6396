// Ops that move data: copies, casts, constants, joining and padding.

#include "core/ops/op.h"
#include "core/tensor/dtype.h"

namespace gestalt::core {

namespace {

int positive_dim(InferContext& c, size_t input) {
  const int64_t d = c.attrs().i64("dim"), n = c.in(input).ndim;
  if (d < -n || d >= n) c.error(fmt::format("dim out of range, got {}, expected {} to {}", d, -n, n - 1));
  return static_cast<int>(d < 0 ? d + n : d);
}

void infer_cast(InferContext& c) {
  TensorType t = c.in(0);
  t.dtype = parse_dtype(c.attrs().str("dtype"));
  c.out(t);
}

void vjp_cast(ComposeContext& c) {
  c.result[0] = c.op("core.cast", {c.grad(0)}, {{"dtype", std::string(dtype_name(c.in(0)->type.dtype))}});
}

void infer_fill(InferContext& c) {
  TensorType t;
  t.dtype = parse_dtype(c.attrs().str("dtype"));
  for (int64_t d : c.attrs().i64_list("shape")) {
    if (t.ndim == GESTALT_MAX_NDIM) c.error("shape has more than 8 dimensions");
    t.shape[static_cast<size_t>(t.ndim++)] = d;
  }
  c.out(t);
}

void infer_concat(InferContext& c) {
  if (c.num_in() == 0) c.error("no inputs");
  TensorType t = c.in(0);
  const int dim = positive_dim(c, 0);
  for (size_t i = 1; i < c.num_in(); ++i) {
    const TensorType& x = c.in(i);
    bool fits = x.dtype == t.dtype && x.ndim == t.ndim;
    for (int k = 0; fits && k < t.ndim; ++k) fits = k == dim || x.dim(k) == t.dim(k);
    if (!fits) c.error(fmt::format("input {} is {}, which does not join {}", i, c.shape_text(x), c.shape_text(t)));
    t.shape[static_cast<size_t>(dim)] = c.dims().add(t.dim(dim), x.dim(dim));
  }
  c.out(t);
}

void vjp_concat(ComposeContext& c) {
  const TensorType& y = c.out(0)->type;
  int64_t dim = c.attrs().i64("dim");
  if (dim < 0) dim += y.ndim;
  std::vector<int64_t> parts;
  for (Value* x : c.inputs()) parts.push_back(x->type.dim(static_cast<int>(dim)));
  c.result = c.ops("core.split_parts", {c.grad(0)}, {{"dim", dim}, {"parts", parts}});
}

void infer_pad(InferContext& c) {
  TensorType t = c.in(0);
  const int dim = positive_dim(c, 0);
  const int64_t before = c.attrs().i64("before"), after = c.attrs().i64("after");
  if (before < 0 || after < 0) c.error(fmt::format("before and after must not be negative, got {} and {}", before, after));
  t.shape[static_cast<size_t>(dim)] = c.dims().add(t.dim(dim), before + after);
  c.out(t);
}

void vjp_pad(ComposeContext& c) {
  int64_t dim = c.attrs().i64("dim");
  if (dim < 0) dim += c.in(0)->type.ndim;
  const int64_t before = c.attrs().i64("before");
  c.result[0] = c.op("core.slice", {c.grad(0)},
                     {{"dim", dim},
                      {"begin", before},
                      {"end", c.dims().add(c.in(0)->type.dim(static_cast<int>(dim)), before)}});
}

}  // namespace

void add_movement_ops(OpRegistry& r) {
  add_core_ops(
      r,
      {{"core.copy(x) -> (y!acc(f32))", "movement", [](InferContext& c) { c.out(c.in(0)); },
        [](ComposeContext& c) { c.result[0] = c.grad(0); }},
       {"core.cast(x, *, dtype: str) -> (y!acc(f32))", "movement", infer_cast, vjp_cast},
       {"core.fill(*, shape: i64[], dtype: str, value: f64) -> (y!nograd)", "movement", infer_fill},
       {"core.concat(x..., *, dim: i64) -> (y)", "movement", infer_concat, vjp_concat},
       {"core.pad(x, *, dim: i64, before: i64, after: i64) -> (y)", "movement", infer_pad, vjp_pad}});
}

}  // namespace gestalt::core
