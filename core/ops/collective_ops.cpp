// Collectives over a mesh axis, with their gradients. `ranks` is the size of the axis, which the host fills in. One rank has
// nothing to exchange: there each of them is a copy. Among more, the host makes the kernels from the communicator.

#include "core/ops/op.h"

namespace gestalt::core {

namespace {

void infer_same(InferContext& c) {
  c.expect_float(0);
  if (c.attrs().str("axis").empty()) c.error("axis is empty, expected the name of a mesh axis (\"tp\", \"dp\", ...)");
  c.out(c.in(0));
}

size_t dim_of(const Attrs& attrs, const TensorType& x) {
  const int64_t dim = attrs.i64("dim");
  return static_cast<size_t>(dim < 0 ? dim + x.ndim : dim);
}

void infer_all_reduce(InferContext& c) {
  const std::string& how = c.attrs().str("reduce");
  if (how != "sum" && how != "max") c.error(fmt::format("reduce is \"{}\", expected sum or max", how));
  infer_same(c);
}

// What follows a sum is the same on every rank, and so is its gradient.
void vjp_all_reduce(ComposeContext& c) {
  if (c.attrs().str("reduce") != "sum")
    fail(GESTALT_UNSUPPORTED, "[core.all_reduce] got a gradient through reduce \"{}\", expected one through sum only",
         c.attrs().str("reduce"));
  c.result[0] = c.grad(0);
}

void expect_dim(InferContext& c) {
  const int64_t dim = c.attrs().i64("dim"), n = c.in(0).ndim;
  if (dim < -n || dim >= n) c.error(fmt::format("dim out of range, got {}, expected {} to {}", dim, -n, n - 1));
}

void infer_all_gather(InferContext& c) {
  expect_dim(c);
  infer_same(c);
  int64_t& size = c.outputs[0].shape[dim_of(c.attrs(), c.in(0))];
  size = c.dims().mul(size, c.attrs().i64("ranks"));
}

// An equal part of `dim` for each rank.
void expect_parts(InferContext& c, size_t dim) {
  const int64_t size = c.in(0).shape[dim], ranks = c.attrs().i64("ranks");
  if (size != 0 && c.dims().div(size, ranks) == 0)
    c.error(fmt::format("dimension {} of {} does not divide over {} = {} ranks", dim, c.shape_text(c.in(0)),
                        c.attrs().str("axis"), ranks));
}

void infer_reduce_scatter(InferContext& c) {
  expect_dim(c);
  infer_same(c);
  const size_t dim = dim_of(c.attrs(), c.in(0));
  expect_parts(c, dim);
  int64_t& size = c.outputs[0].shape[dim];
  size = c.dims().div(size, c.attrs().i64("ranks"));
}

void infer_all_to_all(InferContext& c) {
  infer_same(c);
  if (c.in(0).ndim == 0) c.error("x is a scalar, expected one dimension or more");
  expect_parts(c, 0);
}

void one_rank(ComposeContext& c) {
  if (c.attrs().i64("ranks") != 1)
    fail(GESTALT_UNAVAILABLE, "[collective] {} ranks along '{}' and no communicator", c.attrs().i64("ranks"),
         c.attrs().str("axis"));
  c.result[0] = c.op("core.copy", {c.in(0)});
}

void identity(ComposeContext& c) { c.result[0] = c.op("core.copy", {c.in(0)}); }

// Along another dimension than 0: with that dimension in front.
ComposeFn turned(const char* op) {
  return [op](ComposeContext& c) {
    const auto dim = static_cast<int64_t>(dim_of(c.attrs(), c.in(0)->type));
    if (c.attrs().i64("ranks") == 1 || dim == 0) return one_rank(c);
    const Attrs turn = {{"dim0", int64_t{0}}, {"dim1", dim}};
    Attrs front = c.attrs();
    front.set("dim", int64_t{0});
    c.result[0] = c.op("core.transpose", {c.op(op, {c.op("core.transpose", {c.in(0)}, turn)}, front)}, turn);
  };
}

// The gradient is another collective over the same axis.
ComposeFn by(const char* op) {
  return [op](ComposeContext& c) {
    Attrs a;
    for (const char* name : {"axis", "dim"})
      if (const AttrValue* value = c.attrs().find(name)) a.set(name, *value);
    c.result[0] = c.op(op, {c.grad(0)}, a);
  };
}

void vjp_ring_shift(ComposeContext& c) {
  Attrs a = c.attrs();
  a.set("shift", -a.i64("shift"));
  c.result[0] = c.op("core.ring_shift", {c.grad(0)}, a);
}

}  // namespace

void add_collective_ops(OpRegistry& r) {
  add_core_ops(
      r,
      {{"core.all_reduce(x, *, axis: str, ranks: i64 = 1, reduce: str = \"sum\") -> (y)", "collective",
        infer_all_reduce, vjp_all_reduce, one_rank},
       {"core.copy_to_region(x, *, axis: str, ranks: i64 = 1) -> (y)", "collective", infer_same, by("core.all_reduce"),
        identity},
       {"core.all_gather(x, *, axis: str, ranks: i64 = 1, dim: i64 = 0) -> (y)", "collective", infer_all_gather,
        by("core.reduce_scatter"), turned("core.all_gather")},
       {"core.reduce_scatter(x, *, axis: str, ranks: i64 = 1, dim: i64 = 0) -> (y)", "collective", infer_reduce_scatter,
        by("core.all_gather"), turned("core.reduce_scatter")},
       {"core.all_to_all(x, *, axis: str, ranks: i64 = 1) -> (y)", "collective", infer_all_to_all, by("core.all_to_all"),
        one_rank},
       {"core.broadcast_rank(x, *, axis: str, ranks: i64 = 1, root: i64 = 0) -> (y)", "collective", infer_same, nullptr,
        one_rank},
       {"core.ring_shift(x, *, axis: str, ranks: i64 = 1, shift: i64 = 1) -> (y)", "collective", infer_same,
        vjp_ring_shift, one_rank}});
}

}  // namespace gestalt::core
