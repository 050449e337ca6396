// The two ends of a language model: table lookup and cross entropy.

#include "core/ops/op.h"

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

void check_cross_entropy(InferContext& c) {
  c.expect_float(0);
  c.expect_ndim(0, 2);
  c.expect_integer(1);
  c.expect_ndim(1, 1);
  c.expect_dim(1, 0, c.in(0).dim(0));
  c.expect_dtype(2, GESTALT_F32);
  c.expect_ndim(2, 1);
  c.expect_dim(2, 0, c.in(0).dim(0));
  if (const double s = c.attrs().f64("label_smoothing"); !(s >= 0 && s < 1))
    c.error(fmt::format("label_smoothing is {}, expected 0 <= label_smoothing < 1", s));
}

void infer_cross_entropy(InferContext& c) {
  check_cross_entropy(c);
  const uint32_t dtype = accumulation_dtype(c.in(0).dtype);
  c.out(TensorType(dtype, {}));
  c.out(TensorType(dtype, {c.in(0).dim(0)}));
}

void vjp_cross_entropy(ComposeContext& c) {
  if (c.needs(0))
    c.result[0] = c.op("core.cross_entropy_bwd", {c.in(0), c.in(1), c.in(2), c.out(1), c.grad(0)}, c.attrs());
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
             check_cross_entropy(c);
             const uint32_t dtype = accumulation_dtype(c.in(0).dtype);
             c.expect_dtype(3, dtype);
             c.expect_ndim(3, 1);
             c.expect_dim(3, 0, c.in(0).dim(0));
             c.expect_dtype(4, dtype);
             c.expect_ndim(4, 0);
             c.out(c.in(0));
           }}});
}

}  // namespace gestalt::core
