// Collectives over a mesh axis, with their gradients. An axis of one rank has nothing to exchange: there each of them is a
// copy. (More ranks need kernels that the host makes from a comm component; the mesh refuses them until those exist.)

#include "core/ops/op.h"

namespace gestalt::core {

namespace {

void infer_same(InferContext& c) {
  c.expect_float(0);
  if (c.attrs().str("axis").empty()) c.error("axis is empty, expected the name of a mesh axis (\"tp\", \"dp\", ...)");
  c.out(c.in(0));
}

void infer_along_dim(InferContext& c) {
  const int64_t dim = c.attrs().i64("dim"), n = c.in(0).ndim;
  if (dim < -n || dim >= n) c.error(fmt::format("dim out of range, got {}, expected {} to {}", dim, -n, n - 1));
  infer_same(c);
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

void one_rank(ComposeContext& c) { c.result[0] = c.op("core.copy", {c.in(0)}); }

// The gradient is another collective over the same axis.
ComposeFn by(const char* op) {
  return [op](ComposeContext& c) { c.result[0] = c.op(op, {c.grad(0)}, c.attrs()); };
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
      {{"core.all_reduce(x, *, axis: str, reduce: str = \"sum\") -> (y)", "collective", infer_all_reduce, vjp_all_reduce,
        one_rank},
       {"core.copy_to_region(x, *, axis: str) -> (y)", "collective", infer_same, by("core.all_reduce"), one_rank},
       {"core.all_gather(x, *, axis: str, dim: i64 = 0) -> (y)", "collective", infer_along_dim,
        by("core.reduce_scatter"), one_rank},
       {"core.reduce_scatter(x, *, axis: str, dim: i64 = 0) -> (y)", "collective", infer_along_dim, by("core.all_gather"),
        one_rank},
       {"core.all_to_all(x, *, axis: str) -> (y)", "collective", infer_same, by("core.all_to_all"), one_rank},
       {"core.broadcast_rank(x, *, axis: str, root: i64 = 0) -> (y)", "collective", infer_same, nullptr, one_rank},
       {"core.ring_shift(x, *, axis: str, shift: i64 = 1) -> (y)", "collective", infer_same, vjp_ring_shift, one_rank}});
}

}  // namespace gestalt::core
