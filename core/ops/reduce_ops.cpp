#include <algorithm>

#include "core/ops/op.h"
#include "core/tensor/dtype.h"

namespace gestalt::core {

namespace {

std::vector<bool> reduced(InferContext& c) {
  const TensorType& x = c.in(0);
  std::vector<bool> r(static_cast<size_t>(x.ndim), c.attrs().i64_list("dims").empty());
  for (int64_t d : c.attrs().i64_list("dims")) {
    const int64_t k = d < 0 ? d + x.ndim : d;
    if (k < 0 || k >= x.ndim) c.error(fmt::format("dims holds {}, expected {} to {}", d, -x.ndim, x.ndim - 1));
    r[static_cast<size_t>(k)] = true;
  }
  return r;
}

void infer_sum(InferContext& c) {
  c.expect_float(0);
  TensorType t;
  t.dtype = c.in(0).dtype;
  const auto r = reduced(c);
  for (size_t i = 0; i < r.size(); ++i) {
    if (!r[i])
      t.shape[static_cast<size_t>(t.ndim++)] = c.in(0).shape[i];
    else if (c.attrs().boolean("keep"))
      t.shape[static_cast<size_t>(t.ndim++)] = 1;
  }
  c.out(t);
}

// A gradient of the reduced shape, repeated over x's.
void vjp_sum(ComposeContext& c) {
  const TensorType& x = c.in(0)->type;
  std::vector<int64_t> kept(x.shape.begin(), x.shape.begin() + x.ndim), full = kept;
  const auto& dims = c.attrs().i64_list("dims");
  if (dims.empty()) std::fill(kept.begin(), kept.end(), 1);
  for (int64_t d : dims) kept[static_cast<size_t>(d < 0 ? d + x.ndim : d)] = 1;
  Value* g = c.op("core.reshape", {c.grad(0)}, {{"shape", kept}});
  c.result[0] = c.op("core.broadcast", {g}, {{"shape", full}});
}

// As sum, over how many elements went into each result. That number may be known only when a step runs.
void vjp_mean(ComposeContext& c) {
  const TensorType& x = c.in(0)->type;
  const auto& dims = c.attrs().i64_list("dims");
  int64_t count = 1;
  for (int d = 0; d < x.ndim; ++d) {
    const bool reduced =
        dims.empty() || std::any_of(dims.begin(), dims.end(), [&](int64_t k) { return (k < 0 ? k + x.ndim : k) == d; });
    if (reduced) count = c.dims().mul(count, x.dim(d));
  }
  vjp_sum(c);
  if (count > 0) {
    c.result[0] = c.op("core.scale", {c.result[0]}, {{"factor", 1.0 / static_cast<double>(count)}});
  } else if (count < 0) {
    Value* ones =
        c.op("core.fill", {}, {{"shape", std::vector<int64_t>{count}}, {"dtype", std::string("f32")}, {"value", 1.0}});
    Value* n = c.op("core.cast", {c.op("core.sum", {ones})}, {{"dtype", std::string(dtype_name(x.dtype))}});
    c.result[0] = c.op("core.div", {c.result[0], n});
  }
}

// The ops below work on rows: the last dimension.
TensorType without_last(InferContext& c) {
  c.expect_float(0);
  TensorType t = c.in(0);
  if (t.ndim < 1) c.error("x is a scalar, expected at least one dimension");
  t.shape[static_cast<size_t>(--t.ndim)] = 0;
  return t;
}

TensorType of_dtype(TensorType t, uint32_t dtype) {
  t.dtype = dtype;
  return t;
}

void infer_row(InferContext& c) {
  without_last(c);
  c.out(c.in(0));
}

void infer_softmax_bwd(InferContext& c) {
  without_last(c);
  c.expect_same(1, 0);
  c.out(c.in(0));
}

void infer_logsumexp(InferContext& c) { c.out(of_dtype(without_last(c), accumulation_dtype(c.in(0).dtype))); }

void infer_logsumexp_bwd(InferContext& c) {
  const TensorType t = of_dtype(without_last(c), accumulation_dtype(c.in(0).dtype));
  for (size_t i = 1; i < 3; ++i)
    if (!(c.in(i) == t))
      c.error(
          fmt::format("{} is {}, expected {}", c.op().schema.input(i).name, c.shape_text(c.in(i)), c.shape_text(t)));
  c.out(c.in(0));
}

void infer_max(InferContext& c) {
  const TensorType t = without_last(c);
  c.out(t);
  c.out(of_dtype(t, GESTALT_I32));
}

void infer_topk(InferContext& c) {
  TensorType t = without_last(c);
  const int64_t k = c.attrs().i64("k"), n = c.dims().max(c.in(0).dim(-1));
  if (k < 1 || k > n) c.error(fmt::format("k is {}, expected 1 to {}", k, n));
  t.shape[static_cast<size_t>(t.ndim++)] = k;
  c.out(t);
  c.out(of_dtype(t, GESTALT_I32));
}

void infer_topk_bwd(InferContext& c) {
  c.expect_dtype(0, GESTALT_I32);
  c.expect_float(1);
  if (!c.in(0).same_shape(c.in(1)) || c.in(0).ndim < 1)
    c.error(fmt::format("index is {} and dy is {}, expected one shape with a last dimension", c.shape_text(c.in(0)),
                        c.shape_text(c.in(1))));
  TensorType t = c.in(1);
  t.shape[static_cast<size_t>(t.ndim - 1)] = c.attrs().i64("size");
  c.out(t);
}

void vjp_topk(ComposeContext& c) {
  c.result[0] = c.op("core.topk_bwd", {c.out(1), c.grad(0)}, {{"size", c.in(0)->type.dim(-1)}});
}

// One chosen element a row.
void vjp_max(ComposeContext& c) {
  std::vector<int64_t> rows(c.out(1)->type.shape.begin(), c.out(1)->type.shape.begin() + c.out(1)->type.ndim);
  rows.push_back(1);
  auto column = [&](Value* x) { return c.op("core.reshape", {x}, {{"shape", rows}}); };
  c.result[0] = c.op("core.topk_bwd", {column(c.out(1)), column(c.grad(0))}, {{"size", c.in(0)->type.dim(-1)}});
}

void vjp_cumsum(ComposeContext& c) {
  c.result[0] = c.op("core.cumsum", {c.grad(0)}, {{"reverse", !c.attrs().boolean("reverse")}});
}

}  // namespace

void add_reduce_ops(OpRegistry& r) {
  add_core_ops(
      r, {{"core.sum(x, *, dims: i64[] = [], keep: bool = false) -> (y!acc(f32))", "reduce", infer_sum, vjp_sum},
          {"core.mean(x, *, dims: i64[] = [], keep: bool = false) -> (y!acc(f32))", "reduce", infer_sum, vjp_mean},
          {"core.sum_squares(x) -> (y!nograd)", "reduce",
           [](InferContext& c) {
             c.expect_float(0);
             c.out(TensorType(accumulation_dtype(c.in(0).dtype), {}));
           }},
          {"core.is_finite(x) -> (y!nograd)", "reduce",
           [](InferContext& c) {
             c.expect_float(0);
             c.out(TensorType(GESTALT_BOOL, {}));
           }},
          {"core.max(x) -> (y, index!saved!nograd)", "reduce", infer_max, vjp_max},
          {"core.argmax(x) -> (index!nograd)", "reduce",
           [](InferContext& c) { c.out(of_dtype(without_last(c), GESTALT_I32)); }},
          {"core.topk(x, *, k: i64) -> (y, index!saved!nograd)", "reduce", infer_topk, vjp_topk},
          {"core.topk_bwd(index, dy, *, size: i64) -> (dx)", "reduce", infer_topk_bwd},
          {"core.cumsum(x, *, reverse: bool = false) -> (y!inplace(x))", "reduce", infer_row, vjp_cumsum},
          {"core.softmax(x) -> (y!inplace(x))", "reduce", infer_row,
           [](ComposeContext& c) {
             c.result[0] = c.op("core.softmax_bwd", {c.out(0), c.grad(0)});
           }},
          {"core.softmax_bwd(y, dy) -> (dx!inplace(dy))", "reduce", infer_softmax_bwd},
          {"core.logsumexp(x) -> (y)", "reduce", infer_logsumexp,
           [](ComposeContext& c) {
             c.result[0] = c.op("core.logsumexp_bwd", {c.in(0), c.out(0), c.grad(0)});
           }},
          {"core.logsumexp_bwd(x, y, dy) -> (dx)", "reduce", infer_logsumexp_bwd}});
}

}  // namespace gestalt::core
