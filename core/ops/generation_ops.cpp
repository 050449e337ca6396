// Ops of generation: attention over state that earlier passes left, and the choice of the next token.
#include "core/ops/op.h"

namespace gestalt::core {

namespace {

// q [t, n, d], k [t, g, d], v [t, g, e], states [blocks, block tokens, g, d or e], seq_starts [s + 1], lengths [s],
// block_table [s, blocks of a sequence].
void infer_attention_cached(InferContext& c) {
  c.expect_float(0);
  for (size_t i = 0; i < 3; ++i) {
    c.expect_ndim(i, 3);
    c.expect_dtype(i, c.in(0).dtype);
    c.expect_dim(i, 0, c.in(0).dim(0));
  }
  c.expect_dim(1, 2, c.in(0).dim(2));
  c.expect_dim(2, 1, c.in(1).dim(1));
  const int64_t n = c.in(0).dim(1), g = c.in(1).dim(1);
  if (n < 0 || g < 1 || n % g != 0)
    c.error(fmt::format("{} query heads over {} key/value heads, expected a multiple", n, g));
  for (size_t i = 3; i < 5; ++i) {
    c.expect_dtype(i, c.in(0).dtype);
    c.expect_ndim(i, 4);
    c.expect_dim(i, 2, g);
    c.expect_dim(i, 3, c.in(i - 2).dim(2));
  }
  c.expect_dim(4, 0, c.in(3).dim(0));
  c.expect_dim(4, 1, c.in(3).dim(1));
  for (size_t i = 5; i < 8; ++i) {
    c.expect_dtype(i, GESTALT_I32);
    c.expect_ndim(i, i == 7 ? 2 : 1);
  }
  c.expect_dim(5, 0, c.dims().add(c.in(6).dim(0), 1));
  c.expect_dim(7, 0, c.in(6).dim(0));
  if (c.has(8)) {
    c.expect_ndim(8, 1);
    c.expect_dtype(8, c.in(0).dtype);
    c.expect_dim(8, 0, n);
  }
  if (c.attrs().i64("window") < 0)
    c.error(fmt::format("window is {}, expected 0 (none) or more", c.attrs().i64("window")));
  for (const char* name : {"scale", "softcap"})
    if (!(c.attrs().f64(name) >= 0)) c.error(fmt::format("{} is {}, expected 0 or more", name, c.attrs().f64(name)));
  c.out(TensorType(c.in(0).dtype, {c.in(0).dim(0), n, c.in(2).dim(2)}));
}

void infer_sample(InferContext& c) {
  c.expect_float(0);
  c.expect_ndim(0, 2);
  for (size_t i = 1; i < 6; ++i) {
    c.expect_dtype(i, i == 2 || i == 5 ? GESTALT_I32 : GESTALT_F32);
    c.expect_ndim(i, i == 5 ? 2 : 1);
    c.expect_dim(i, 0, c.in(0).dim(0));
  }
  c.expect_dim(5, 1, 4);
  if (c.has(6)) c.expect_same(6, 0);
  if (const int64_t v = c.attrs().i64("vocab"); v < 0 || v > c.in(0).dim(1))
    c.error(fmt::format("vocab is {}, expected 0 (all) to {}", v, c.dims().text(c.in(0).dim(1))));
  c.out(TensorType(GESTALT_I32, {c.in(0).dim(0)}));
  c.out(TensorType(accumulation_dtype(c.in(0).dtype), {c.in(0).dim(0)}));
}

}  // namespace

void add_generation_ops(OpRegistry& r) {
  add_core_ops(r,
               {{"core.attention_cached(q, k, v, k_state!mut, v_state!mut, seq_starts, lengths, block_table, sinks?, "
                 "*, scale: f64 = 0, window: i64 = 0, softcap: f64 = 0) -> (o!nograd)",
                 "attention", infer_attention_cached, nullptr, nullptr, nullptr, GESTALT_OP_MUTATES},
                {"core.sample(logits, temperature, top_k, top_p, min_p, seeds, bias?, *, vocab: i64 = 0) -> "
                 "(ids!nograd, logprob!nograd)",
                 "sampling", infer_sample, nullptr, nullptr, nullptr, GESTALT_OP_PURE | GESTALT_OP_RANDOM}});
}

}  // namespace gestalt::core
