// Rows by number, and numbers as tensors.

#include "core/ops/op.h"
#include "core/tensor/dtype.h"

namespace gestalt::core {

namespace {

void check_rows(InferContext& c) {
  c.expect_float(0);
  c.expect_ndim(0, 2);
  c.expect_integer(1);
  c.expect_ndim(1, 1);
}

void infer_gather_rows(InferContext& c) {
  check_rows(c);
  c.out(TensorType(c.in(0).dtype, {c.in(1).dim(0), c.in(0).dim(1)}));
}

void vjp_gather_rows(ComposeContext& c) {
  c.result[0] = c.op("core.scatter_add_rows", {c.grad(0), c.in(1)}, {{"rows", c.in(0)->type.dim(0)}});
}

void infer_scatter_add_rows(InferContext& c) {
  check_rows(c);
  c.expect_dim(1, 0, c.in(0).dim(0));
  c.out(TensorType(c.in(0).dtype, {c.attrs().i64("rows"), c.in(0).dim(1)}));
}

void vjp_scatter_add_rows(ComposeContext& c) { c.result[0] = c.op("core.gather_rows", {c.grad(0), c.in(1)}); }

int64_t selected_dim(const Attrs& attrs, const TensorType& x) {
  const int64_t d = attrs.i64("dim");
  return d < 0 ? d + x.ndim : d;
}

void infer_index_select(InferContext& c) {
  c.expect_float(0);
  c.expect_integer(1);
  c.expect_ndim(1, 1);
  TensorType t = c.in(0);
  const int64_t d = selected_dim(c.attrs(), t);
  if (d < 0 || d >= t.ndim)
    c.error(fmt::format("dim out of range, got {}, expected {} to {}", c.attrs().i64("dim"), -t.ndim, t.ndim - 1));
  t.shape[static_cast<size_t>(d)] = c.in(1).dim(0);
  c.out(t);
}

// The dimension to the front, rows, and back.
void decompose_index_select(ComposeContext& c) {
  const TensorType& x = c.in(0)->type;
  const int64_t d = selected_dim(c.attrs(), x);
  auto front = [&](Value* v) { return d == 0 ? v : c.op("core.transpose", {v}, {{"dim0", int64_t{0}}, {"dim1", d}}); };
  Value* turned = front(c.in(0));
  std::vector<int64_t> shape(turned->type.shape.begin(), turned->type.shape.begin() + x.ndim);
  int64_t rest = 1;
  for (int i = 1; i < x.ndim; ++i) rest = c.dims().mul(rest, turned->type.dim(i));
  Value* rows = c.op("core.reshape", {turned}, {{"shape", std::vector<int64_t>{shape[0], rest}}});
  shape[0] = c.in(1)->type.dim(0);
  c.result[0] = front(c.op("core.reshape", {c.op("core.gather_rows", {rows, c.in(1)})}, {{"shape", shape}}));
}

void infer_arange(InferContext& c) { c.out(TensorType(parse_dtype(c.attrs().str("dtype")), {c.attrs().i64("size")})); }

void infer_one_hot(InferContext& c) {
  c.expect_integer(0);
  TensorType t = c.in(0);
  const int64_t classes = c.attrs().i64("classes");
  if (classes < 1) c.error(fmt::format("classes is {}, expected 1 or more", classes));
  if (t.ndim == GESTALT_MAX_NDIM) c.error(fmt::format("index is {}, expected at most 7 dimensions", c.shape_text(t)));
  t.dtype = parse_dtype(c.attrs().str("dtype"));
  t.shape[static_cast<size_t>(t.ndim++)] = classes;
  c.out(t);
}

}  // namespace

void add_index_ops(OpRegistry& r) {
  add_core_ops(
      r, {{"core.gather_rows(x, index) -> (y)", "movement", infer_gather_rows, vjp_gather_rows},
          {"core.scatter_add_rows(x, index, *, rows: i64) -> (y!acc(f32))", "movement", infer_scatter_add_rows,
           vjp_scatter_add_rows},
          {"core.index_select(x, index, *, dim: i64) -> (y)", "movement", infer_index_select, nullptr,
           decompose_index_select},
          {"core.arange(*, size: i64, dtype: str = \"i32\", start: f64 = 0, step: f64 = 1) -> (y!nograd)", "movement",
           infer_arange},
          {"core.one_hot(index, *, classes: i64, dtype: str = \"f32\") -> (y!nograd)", "movement", infer_one_hot}});
}

}  // namespace gestalt::core
