// The two ends of a language model: table lookup and cross entropy.

#include "core/ops/op.h"
#include "core/tensor/dtype.h"

namespace gestalt::core {

namespace {

void infer_embedding(InferContext& c) {
  c.expect_integer(0);
  c.expect_ndim(0, 1);
  c.expect_float(1);
  c.expect_ndim(1, 2);
  c.out(TensorType(c.in(1).dtype, {c.in(0).dim(0), c.in(1).dim(1)}));
}

void vjp_embedding(ComposeContext& c) {
  if (c.needs(1)) c.result[1] = c.op("core.embedding_bwd", {c.in(0), c.grad(0)}, {{"vocab", c.in(1)->type.dim(0)}});
}

void infer_embedding_bwd(InferContext& c) {
  c.expect_integer(0);
  c.expect_ndim(1, 2);
  c.expect_dim(1, 0, c.in(0).dim(0));
  c.out(TensorType(c.in(1).dtype, {c.attrs().i64("vocab"), c.in(1).dim(1)}));
}

void check_losses(InferContext& c) {
  c.expect_float(0);
  c.expect_ndim(0, 2);
  c.expect_integer(1);
  c.expect_ndim(1, 1);
  c.expect_dim(1, 0, c.in(0).dim(0));
  c.expect_dtype(2, GESTALT_F32);
  c.expect_ndim(2, 1);
  c.expect_dim(2, 0, c.in(0).dim(0));
}

void check_smoothing(InferContext& c) {
  if (const double s = c.attrs().f64("label_smoothing"); !(s >= 0 && s < 1))
    c.error(fmt::format("label_smoothing is {}, expected 0 <= label_smoothing < 1", s));
}

void infer_cross_entropy(InferContext& c) {
  check_losses(c);
  check_smoothing(c);
  const uint32_t dtype = accumulation_dtype(c.in(0).dtype);
  c.out(TensorType(dtype, {}));
  c.out(TensorType(dtype, {c.in(0).dim(0)}));
}

void vjp_cross_entropy(ComposeContext& c) {
  if (c.needs(0))
    c.result[0] = c.op("core.cross_entropy_bwd", {c.in(0), c.in(1), c.in(2), c.out(1), c.grad(0)}, c.attrs());
}

// The rows of a table of `classes` that begin with row `first` are this rank's part.
void check_part(InferContext& c) {
  check_losses(c);
  const int64_t first = c.attrs().i64("first"), classes = c.attrs().i64("classes"), own = c.dims().max(c.in(0).dim(1));
  if (first < 0 || first + own > classes)
    c.error(fmt::format("first is {} and classes {}, expected {} logits a token to lie between 0 and classes", first,
                        classes, own));
}

TensorType row_of(InferContext& c) { return TensorType(accumulation_dtype(c.in(0).dtype), {c.in(0).dim(0)}); }

void infer_part(InferContext& c) {
  check_part(c);
  for (int i = 0; i < 4; ++i) c.out(row_of(c));
}

void infer_parallel(InferContext& c) {
  check_part(c);
  check_smoothing(c);
  if (c.attrs().str("axis").empty()) c.error("axis is empty, expected the name of a mesh axis (\"tp\")");
  c.out(TensorType(accumulation_dtype(c.in(0).dtype), {}));
  c.out(row_of(c));
}

Attrs part_attrs(const Attrs& from, bool smoothing) {
  Attrs a{{"first", from.i64("first")}, {"classes", from.i64("classes")}};
  if (smoothing) a.set("label_smoothing", from.f64("label_smoothing"));
  return a;
}

// lse and the label's logit from each rank's largest logit, sum of exponentials and logit of labels in its part.
void decompose_parallel(ComposeContext& c) {
  const std::string axis = c.attrs().str("axis");
  const std::vector<Value*> part =
      c.ops("core.cross_entropy_part", {c.in(0), c.in(1), c.in(2)}, part_attrs(c.attrs(), false));
  auto over_ranks = [&](Value* x, const char* how) {
    return c.op("core.all_reduce", {x}, {{"axis", axis}, {"reduce", std::string(how)}});
  };
  Value* max = over_ranks(part[0], "max");
  Value* sum = over_ranks(c.op("core.mul", {part[1], c.op("core.exp", {c.op("core.sub", {part[0], max})})}), "sum");
  Value* lse = c.op("core.add", {c.op("core.log", {sum}), max});
  const double s = c.attrs().f64("label_smoothing");
  Value* aim = over_ranks(part[2], "sum");
  if (s != 0) {
    Value* total = over_ranks(part[3], "sum");
    const double each = s / static_cast<double>(c.attrs().i64("classes"));
    aim = c.op("core.add", {c.op("core.scale", {aim}, {{"factor", 1 - s}}), c.op("core.scale", {total}, {{"factor", each}})});
  }
  Value* weights = c.in(2);
  if (weights->type.dtype != lse->type.dtype)
    weights = c.op("core.cast", {weights}, {{"dtype", std::string(dtype_name(lse->type.dtype))}});
  c.result = {c.op("core.sum", {c.op("core.mul", {c.op("core.sub", {lse, aim}), weights})}), lse};
}

// Each rank's part of the gradient needs nothing but lse.
void vjp_parallel(ComposeContext& c) {
  if (c.needs(0))
    c.result[0] = c.op("core.cross_entropy_parallel_bwd", {c.in(0), c.in(1), c.in(2), c.out(1), c.grad(0)},
                       part_attrs(c.attrs(), true));
}

void infer_cross_entropy_bwd(InferContext& c) {
  const uint32_t dtype = accumulation_dtype(c.in(0).dtype);
  c.expect_dtype(3, dtype);
  c.expect_ndim(3, 1);
  c.expect_dim(3, 0, c.in(0).dim(0));
  c.expect_dtype(4, dtype);
  c.expect_ndim(4, 0);
  c.out(c.in(0));
}

}  // namespace

void add_embedding_ops(OpRegistry& r) {
  add_core_ops(
      r, {{"core.embedding(ids, w) -> (y)", "embedding", infer_embedding, vjp_embedding},
          {"core.embedding_bwd(ids, dy, *, vocab: i64) -> (dw!acc(f32))", "embedding", infer_embedding_bwd},
          {"core.cross_entropy(logits, labels, weights, *, label_smoothing: f64 = 0) -> (loss_sum, lse!saved!nograd)",
           "loss", infer_cross_entropy, vjp_cross_entropy},
          {"core.cross_entropy_bwd(logits, labels, weights, lse, dloss, *, label_smoothing: f64 = 0) -> "
           "(dlogits!inplace(logits))",
           "loss", [](InferContext& c) {
             check_losses(c);
             check_smoothing(c);
             infer_cross_entropy_bwd(c);
           }},
          {"core.cross_entropy_part(logits, labels, weights, *, first: i64, classes: i64) -> (max!nograd, "
           "sum_exp!nograd, label_logit!nograd, logit_sum!nograd)",
           "loss", infer_part},
          {"core.cross_entropy_parallel(logits, labels, weights, *, axis: str, first: i64, classes: i64, "
           "label_smoothing: f64 = 0) -> (loss_sum, lse!saved!nograd)",
           "loss", infer_parallel, vjp_parallel, decompose_parallel},
          {"core.cross_entropy_parallel_bwd(logits, labels, weights, lse, dloss, *, first: i64, classes: i64, "
           "label_smoothing: f64 = 0) -> (dlogits!inplace(logits))",
           "loss", [](InferContext& c) {
             check_part(c);
             check_smoothing(c);
             infer_cross_entropy_bwd(c);
           }}});
}

}  // namespace gestalt::core
