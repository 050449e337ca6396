// The core ops as functions. Shape letters: t tokens, n heads, g key/value heads, d head size, h width, v vocabulary,
// o outputs, i inputs. A gradient comes from each op's rule; names ending in _bwd are those rules' ops.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gestalt/module.hpp"
#include "gestalt/tensor.hpp"

namespace gestalt::ops {

// In the shape of reshape: this dimension is what is left.
inline constexpr int64_t kRest = INT64_MIN;

inline Recorder recorder_of(Tensor x) {
  if (!x) throw InvalidArgument("[ops] got no tensor, expected one as the first input");
  return Recorder(x.build(), x.host());
}

// Views: no work, storage is shared.
inline Tensor reshape(Tensor x, const Shape& shape) {
  return recorder_of(x).op("core.reshape", {x}, {{"shape", shape}});
}
inline Tensor transpose(Tensor x, int64_t dim0, int64_t dim1) {
  return recorder_of(x).op("core.transpose", {x}, {{"dim0", dim0}, {"dim1", dim1}});
}
inline Tensor slice(Tensor x, int64_t dim, int64_t begin, int64_t end) {
  return recorder_of(x).op("core.slice", {x}, {{"dim", dim}, {"begin", begin}, {"end", end}});
}
// Pieces of the given sizes along a dimension.
inline std::vector<Tensor> split_parts(Tensor x, const Shape& parts, int64_t dim = -1) {
  return recorder_of(x).ops("core.split_parts", {x}, {{"parts", parts}, {"dim", dim}});
}
inline Tensor broadcast(Tensor x, const Shape& shape) {
  return recorder_of(x).op("core.broadcast", {x}, {{"shape", shape}});
}

// Data movement.
inline Tensor copy(Tensor x) { return recorder_of(x).op("core.copy", {x}); }
inline Tensor cast(Tensor x, DType dtype) { return recorder_of(x).op("core.cast", {x}, {{"dtype", name_of(dtype)}}); }
inline Tensor fill(Recorder& r, const Shape& shape, DType dtype, double value) {
  return r.op("core.fill", {}, {{"shape", shape}, {"dtype", name_of(dtype)}, {"value", value}});
}
inline Tensor concat(std::span<const Tensor> x, int64_t dim) {
  const Attr attrs[] = {{"dim", dim}};
  return recorder_of(x.empty() ? Tensor() : x[0]).ops("core.concat", x, attrs).at(0);
}
inline Tensor pad(Tensor x, int64_t dim, int64_t before, int64_t after) {
  return recorder_of(x).op("core.pad", {x}, {{"dim", dim}, {"before", before}, {"after", after}});
}

// Rows [index.size, h] of x [n, h], and rows added where they came from. index i32 or i64, checked.
inline Tensor gather_rows(Tensor x_nh, Tensor index_t) {
  return recorder_of(x_nh).op("core.gather_rows", {x_nh, index_t});
}
inline Tensor scatter_add_rows(Tensor x_th, Tensor index_t, int64_t rows) {
  return recorder_of(x_th).op("core.scatter_add_rows", {x_th, index_t}, {{"rows", rows}});
}
inline Tensor index_select(Tensor x, Tensor index, int64_t dim) {
  return recorder_of(x).op("core.index_select", {x, index}, {{"dim", dim}});
}
inline Tensor arange(Recorder& r, int64_t size, DType dtype = kI32, double start = 0, double step = 1) {
  return r.op("core.arange", {}, {{"size", size}, {"dtype", name_of(dtype)}, {"start", start}, {"step", step}});
}
inline Tensor one_hot(Tensor index, int64_t classes, DType dtype = kF32) {
  return recorder_of(index).op("core.one_hot", {index}, {{"classes", classes}, {"dtype", name_of(dtype)}});
}

// Elementwise; b has a's shape, a suffix of it, or is a scalar.
inline Tensor add(Tensor a, Tensor b) { return recorder_of(a).op("core.add", {a, b}); }
inline Tensor sub(Tensor a, Tensor b) { return recorder_of(a).op("core.sub", {a, b}); }
inline Tensor mul(Tensor a, Tensor b) { return recorder_of(a).op("core.mul", {a, b}); }
inline Tensor div(Tensor a, Tensor b) { return recorder_of(a).op("core.div", {a, b}); }
inline Tensor scale(Tensor x, double factor) { return recorder_of(x).op("core.scale", {x}, {{"factor", factor}}); }
inline Tensor neg(Tensor x) { return recorder_of(x).op("core.neg", {x}); }
inline Tensor residual_add(Tensor x, Tensor residual) { return recorder_of(x).op("core.residual_add", {x, residual}); }
inline Tensor bias_add(Tensor x, Tensor b) { return recorder_of(x).op("core.bias_add", {x, b}); }
inline Tensor abs(Tensor x) { return recorder_of(x).op("core.abs", {x}); }
inline Tensor exp(Tensor x) { return recorder_of(x).op("core.exp", {x}); }
inline Tensor log(Tensor x) { return recorder_of(x).op("core.log", {x}); }
inline Tensor sqrt(Tensor x) { return recorder_of(x).op("core.sqrt", {x}); }
inline Tensor rsqrt(Tensor x) { return recorder_of(x).op("core.rsqrt", {x}); }
inline Tensor tanh(Tensor x) { return recorder_of(x).op("core.tanh", {x}); }
inline Tensor sigmoid(Tensor x) { return recorder_of(x).op("core.sigmoid", {x}); }
inline Tensor clamp(Tensor x, double min, double max) {
  return recorder_of(x).op("core.clamp", {x}, {{"min", min}, {"max", max}});
}
// relation: eq, ne, lt, le, gt or ge. The result is bool.
inline Tensor compare(Tensor a, Tensor b, std::string_view relation) {
  return recorder_of(a).op("core.compare", {a, b}, {{"relation", relation}});
}
// Of the condition's shape; a and b have that or its last dimensions.
inline Tensor where(Tensor condition, Tensor a, Tensor b) {
  return recorder_of(condition).op("core.where", {condition, a, b});
}

// approximate: "tanh" or "none" (erf).
inline Tensor gelu(Tensor x, std::string_view approximate = "tanh") {
  return recorder_of(x).op("core.gelu", {x}, {{"approximate", approximate}});
}
inline Tensor gelu_bwd(Tensor x, Tensor dy, std::string_view approximate = "tanh") {
  return recorder_of(x).op("core.gelu_bwd", {x, dy}, {{"approximate", approximate}});
}
inline Tensor silu(Tensor x) { return recorder_of(x).op("core.silu", {x}); }
inline Tensor silu_bwd(Tensor x, Tensor dy) { return recorder_of(x).op("core.silu_bwd", {x, dy}); }
inline Tensor relu(Tensor x) { return recorder_of(x).op("core.relu", {x}); }
inline Tensor relu_bwd(Tensor x, Tensor dy) { return recorder_of(x).op("core.relu_bwd", {x, dy}); }
inline Tensor relu2(Tensor x) { return recorder_of(x).op("core.relu2", {x}); }
inline Tensor softplus(Tensor x) { return recorder_of(x).op("core.softplus", {x}); }
// cap tanh(x / cap)
inline Tensor softcap(Tensor x, double cap) { return recorder_of(x).op("core.softcap", {x}, {{"cap", cap}}); }
// silu(gate) * up for gate_up [t, 2f], the gate first. With g = min(gate, limit) and u = up within +-limit (0: none) it
// is g sigmoid(alpha g) (u + up_offset).
struct SwigluOptions {
  double alpha = 1, limit = 0, up_offset = 0;
};
inline Tensor swiglu(Tensor gate_up) { return recorder_of(gate_up).op("core.swiglu", {gate_up}); }
inline Tensor swiglu(Tensor gate_up, SwigluOptions o) {
  return recorder_of(gate_up).op("core.swiglu", {gate_up},
                                 {{"alpha", o.alpha}, {"limit", o.limit}, {"up_offset", o.up_offset}});
}
inline Tensor geglu(Tensor gate_up, std::string_view approximate = "tanh") {
  return recorder_of(gate_up).op("core.geglu", {gate_up}, {{"approximate", approximate}});
}
inline Tensor reglu(Tensor gate_up) { return recorder_of(gate_up).op("core.reglu", {gate_up}); }

// Reductions. No dims: all.
inline Tensor sum(Tensor x, const Shape& dims = {}, bool keep = false) {
  return recorder_of(x).op("core.sum", {x}, {{"dims", dims}, {"keep", keep}});
}
inline Tensor mean(Tensor x, const Shape& dims = {}, bool keep = false) {
  return recorder_of(x).op("core.mean", {x}, {{"dims", dims}, {"keep", keep}});
}
inline Tensor sum_squares(Tensor x) { return recorder_of(x).op("core.sum_squares", {x}); }
inline Tensor is_finite(Tensor x) { return recorder_of(x).op("core.is_finite", {x}); }  // of all elements: bool []
// Over the last dimension.
inline Tensor softmax(Tensor x) { return recorder_of(x).op("core.softmax", {x}); }
inline Tensor logsumexp(Tensor x) { return recorder_of(x).op("core.logsumexp", {x}); }  // f32 (f64)
inline Tensor cumsum(Tensor x, bool reverse = false) {
  return recorder_of(x).op("core.cumsum", {x}, {{"reverse", reverse}});
}
inline Tensor argmax(Tensor x) { return recorder_of(x).op("core.argmax", {x}); }
struct Largest {
  Tensor values, index;  // index i32; of equal elements the first
};
inline Largest max(Tensor x) {
  const auto out = recorder_of(x).ops("core.max", {x});
  return {out.at(0), out.at(1)};
}
inline Largest topk(Tensor x, int64_t k) {
  const auto out = recorder_of(x).ops("core.topk", {x}, {{"k", k}});
  return {out.at(0), out.at(1)};
}

// keys i32 [t, 2] and seed i32 [4] are batch("keys") and batch("step_seed"). `use` tells the dropouts of a model apart.
inline Tensor dropout(Tensor x_th, Tensor keys, Tensor seed, double p, int64_t use, int64_t column0 = 0) {
  return recorder_of(x_th).op("core.dropout", {x_th, keys, seed}, {{"p", p}, {"use", use}, {"column0", column0}});
}

// Element i, counted row by row, depends on seed i32 [4] (batch("step_seed")), use and i alone.
inline Tensor uniform(Tensor seed, const Shape& shape, int64_t use, double low = 0, double high = 1,
                      DType dtype = kF32) {
  return recorder_of(seed).op(
      "core.uniform", {seed},
      {{"shape", shape}, {"use", use}, {"low", low}, {"high", high}, {"dtype", name_of(dtype)}});
}
inline Tensor normal(Tensor seed, const Shape& shape, int64_t use, double mean = 0, double std = 1,
                     DType dtype = kF32) {
  return recorder_of(seed).op(
      "core.normal", {seed}, {{"shape", shape}, {"use", use}, {"mean", mean}, {"std", std}, {"dtype", name_of(dtype)}});
}

inline Tensor rms_norm(Tensor x_th, Tensor w_h, double eps = 1e-5) {
  return recorder_of(x_th).op("core.rms_norm", {x_th, w_h}, {{"eps", eps}});
}
// Weights are w + offset.
inline Tensor rms_norm(Tensor x_th, Tensor w_h, double eps, double offset) {
  return recorder_of(x_th).op("core.rms_norm", {x_th, w_h}, {{"eps", eps}, {"offset", offset}});
}
inline Tensor layer_norm(Tensor x_th, Tensor w_h, Tensor b_h = {}, double eps = 1e-5) {
  return recorder_of(x_th).op("core.layer_norm", {x_th, w_h, b_h}, {{"eps", eps}});
}

struct ResidualNorm {
  Tensor y, h;  // the norm of h = x + residual
};
inline ResidualNorm residual_rms_norm(Tensor x_th, Tensor residual_th, Tensor w_h, double eps = 1e-5,
                                      double offset = 0) {
  const auto out =
      recorder_of(x_th).ops("core.residual_rms_norm", {x_th, residual_th, w_h}, {{"eps", eps}, {"offset", offset}});
  return {out.at(0), out.at(1)};
}
inline ResidualNorm residual_layer_norm(Tensor x_th, Tensor residual_th, Tensor w_h, Tensor b_h = {},
                                        double eps = 1e-5) {
  const auto out = recorder_of(x_th).ops("core.residual_layer_norm", {x_th, residual_th, w_h, b_h}, {{"eps", eps}});
  return {out.at(0), out.at(1)};
}
// rms_norm of each of the groups of h of x silu(gate), times w; norm_before_gate: of x, then times silu(gate).
inline Tensor gated_rms_norm(Tensor x_th, Tensor gate_th, Tensor w_h, double eps = 1e-5, int64_t groups = 1,
                             bool norm_before_gate = false) {
  return recorder_of(x_th).op("core.gated_rms_norm", {x_th, gate_th, w_h},
                              {{"eps", eps}, {"groups", groups}, {"norm_before_gate", norm_before_gate}});
}

// Two matrices, or batches of them with equal leading dimensions.
inline Tensor matmul(Tensor a, Tensor b, bool trans_a = false, bool trans_b = false) {
  return recorder_of(a).op("core.matmul", {a, b}, {{"trans_a", trans_a}, {"trans_b", trans_b}});
}
// x w^T + b
inline Tensor linear(Tensor x_ti, Tensor w_oi, Tensor b_o = {}) {
  return recorder_of(x_ti).op("core.linear", {x_ti, w_oi, b_o});
}

inline Tensor linear_gelu(Tensor x_ti, Tensor w_oi, Tensor b_o = {}, std::string_view approximate = "tanh") {
  return recorder_of(x_ti).op("core.linear_gelu", {x_ti, w_oi, b_o}, {{"approximate", approximate}});
}
inline Tensor linear_swiglu(Tensor x_ti, Tensor w_oi, Tensor b_o = {}, SwigluOptions o = {}) {
  return recorder_of(x_ti).op("core.linear_swiglu", {x_ti, w_oi, b_o},
                              {{"alpha", o.alpha}, {"limit", o.limit}, {"up_offset", o.up_offset}});
}

inline Tensor embedding(Tensor ids_t, Tensor w_vh) { return recorder_of(ids_t).op("core.embedding", {ids_t, w_vh}); }
inline Tensor embedding_bwd(Tensor ids_t, Tensor dy_th, int64_t vocab) {
  return recorder_of(ids_t).op("core.embedding_bwd", {ids_t, dy_th}, {{"vocab", vocab}});
}
struct CrossEntropy {
  Tensor loss_sum;  // []
  Tensor lse;       // f32 [t]
};
inline CrossEntropy cross_entropy(Tensor logits_tv, Tensor labels_t, Tensor weights_t) {
  const auto out = recorder_of(logits_tv).ops("core.cross_entropy", {logits_tv, labels_t, weights_t});
  return {out.at(0), out.at(1)};
}

// Smoothing s: (1 - s) of the label and s / v of every class.
inline CrossEntropy cross_entropy(Tensor logits_tv, Tensor labels_t, Tensor weights_t, double label_smoothing) {
  const auto out = recorder_of(logits_tv).ops("core.cross_entropy", {logits_tv, labels_t, weights_t},
                                              {{"label_smoothing", label_smoothing}});
  return {out.at(0), out.at(1)};
}
// cross_entropy over `classes` of which this rank's logits are those from `first` on; the other ranks of the axis have
// the others. Labels count over all classes.
struct ClassesOfRank {
  std::string_view axis = "tp";
  int64_t first = 0, classes = 0;
};
inline CrossEntropy cross_entropy_parallel(Tensor logits_tv, Tensor labels_t, Tensor weights_t, ClassesOfRank of,
                                           double label_smoothing = 0) {
  const auto out = recorder_of(logits_tv).ops("core.cross_entropy_parallel", {logits_tv, labels_t, weights_t},
                                              {{"axis", of.axis},
                                               {"first", of.first},
                                               {"classes", of.classes},
                                               {"label_smoothing", label_smoothing}});
  return {out.at(0), out.at(1)};
}
// cross_entropy of x w^T; softcap 0: none.
inline CrossEntropy linear_cross_entropy(Tensor x_th, Tensor w_vh, Tensor labels_t, Tensor weights_t,
                                         double softcap = 0, double label_smoothing = 0) {
  const auto out = recorder_of(x_th).ops("core.linear_cross_entropy", {x_th, w_vh, labels_t, weights_t},
                                         {{"softcap", softcap}, {"label_smoothing", label_smoothing}});
  return {out.at(0), out.at(1)};
}

struct RotaryOptions {
  double theta = 1e4;
  int64_t dims = 0;  // how many of d turn; 0: all
  bool interleaved = false, inverse = false;
};
inline Tensor rotary(Tensor x_tnd, Tensor positions_t, RotaryOptions o = {}) {
  return recorder_of(x_tnd).op(
      "core.rotary", {x_tnd, positions_t},
      {{"theta", o.theta}, {"dims", o.dims}, {"interleaved", o.interleaved}, {"inverse", o.inverse}});
}
// Frequency scaling of long contexts; names and formulas as in Hugging Face's rope_scaling (rope_type is kind).
// attention_factor 0: by the kind's rule.
struct RotaryTable {
  std::string_view kind = "default";  // linear, dynamic, yarn, llama3, longrope
  int64_t dims = 0;                   // of a head that turn
  double theta = 1e4, factor = 1;
  int64_t original_max = 0;
  double low_freq_factor = 1, high_freq_factor = 4;             // llama3
  double beta_fast = 32, beta_slow = 1;                         // yarn
  bool truncate = true;                                         // yarn
  double mscale = 0, mscale_all_dim = 0, attention_factor = 0;  // yarn; yarn and longrope
  std::span<const double> short_factor{}, long_factor{};        // longrope, dims / 2 each
  DType dtype = kF32;                                           // f64 for rotations of f64
};
// [t, dims]: cosines, then sines, of each token. Made once and given to every rotary.
inline Tensor rotary_table(Tensor positions_t, const RotaryTable& o) {
  return recorder_of(positions_t)
      .op("core.rotary_table", {positions_t},
          {{"kind", o.kind},
           {"dims", o.dims},
           {"theta", o.theta},
           {"factor", o.factor},
           {"original_max", o.original_max},
           {"low_freq_factor", o.low_freq_factor},
           {"high_freq_factor", o.high_freq_factor},
           {"beta_fast", o.beta_fast},
           {"beta_slow", o.beta_slow},
           {"truncate", o.truncate},
           {"mscale", o.mscale},
           {"mscale_all_dim", o.mscale_all_dim},
           {"attention_factor", o.attention_factor},
           {"short_factor", o.short_factor},
           {"long_factor", o.long_factor},
           {"dtype", name_of(o.dtype)}});
}
// By a table instead of positions; theta and dims of the options are the table's.
inline Tensor rotary_by_table(Tensor x_tnd, Tensor table, bool interleaved = false, bool inverse = false) {
  return recorder_of(x_tnd).op("core.rotary", {x_tnd, Tensor(), table},
                               {{"interleaved", interleaved}, {"inverse", inverse}});
}

// Biases of attention [n, 2 reach + 1] by distance. T5: of a table [buckets, n]; ALiBi: fixed slopes.
inline Tensor relative_bias(Tensor table_bn, int64_t reach, int64_t max_distance = 128, bool bidirectional = false) {
  return recorder_of(table_bn).op("core.relative_bias", {table_bn},
                                  {{"reach", reach}, {"max_distance", max_distance}, {"bidirectional", bidirectional}});
}
inline Tensor alibi(Recorder& r, int64_t heads, int64_t reach, DType dtype = kF32) {
  return r.op("core.alibi", {}, {{"heads", heads}, {"reach", reach}, {"dtype", name_of(dtype)}});
}

struct AttentionOptions {
  bool causal = true;
  double scale = 0;    // 0: 1/sqrt(d)
  int64_t window = 0;  // a token sees itself and the window - 1 before it; 0: all
  double softcap = 0;  // scores become softcap tanh(score / softcap); 0: as they are
  Tensor sinks_n{};    // one more logit of a head, without a value
  Tensor bias{};       // [n, 2r + 1], added to the score: column r + key - query; r + 1 tokens a segment at most
  double dropout = 0;  // of the weights; above 0 with keys and seed, batch("keys") and batch("step_seed")
  int64_t use = 0;     // as in dropout()
  int64_t head0 = 0;   // number of the first head
  Tensor keys_t2{}, seed{};
};
// seq_starts i32 [s+1]: tokens attend inside their segment only. v's heads may have another size than q's and k's.
inline Tensor attention(Tensor q_tnd, Tensor k_tgd, Tensor v_tge, Tensor seq_starts, const AttentionOptions& o) {
  return recorder_of(q_tnd).op("core.attention",
                               {q_tnd, k_tgd, v_tge, seq_starts, o.sinks_n, o.bias, o.keys_t2, o.seed},
                               {{"causal", o.causal},
                                {"scale", o.scale},
                                {"window", o.window},
                                {"softcap", o.softcap},
                                {"p", o.dropout},
                                {"use", o.use},
                                {"head0", o.head0}});
}
inline Tensor attention(Tensor q_tnd, Tensor k_tgd, Tensor v_tge, Tensor seq_starts, bool causal = true,
                        double scale = 0) {
  return recorder_of(q_tnd).op("core.attention", {q_tnd, k_tgd, v_tge, seq_starts},
                               {{"causal", causal}, {"scale", scale}});
}

// Where generation keeps keys and values: [blocks, tokens of a block, g, d].
struct KeyValueState {
  Tensor k, v;
};
// The sequences of a pass of generation: where their new tokens begin, their lengths after it, their blocks.
struct Sequences {
  Tensor starts, lengths, block_table;
};
inline Sequences sequences_of(Build& b) { return {b.batch("seq_starts"), b.batch("lengths"), b.batch("block_table")}; }
// Puts keys and values of the new tokens into the state and attends to all that their sequences have, causally.
inline Tensor attention_cached(Tensor q_tnd, Tensor k_tgd, Tensor v_tge, KeyValueState state, Sequences s,
                               const AttentionOptions& o = {}) {
  if (!o.causal || o.bias || o.dropout > 0)
    throw InvalidArgument("[core.attention_cached] got an attention that is not causal or has a bias or dropout");
  return recorder_of(q_tnd).op(
      "core.attention_cached",
      {q_tnd, k_tgd, v_tge, state.k, state.v, s.starts, s.lengths, s.block_table, o.sinks_n},
      {{"scale", o.scale}, {"window", o.window}, {"softcap", o.softcap}});
}
// The next token of each row: ids i32 [s] and log probabilities f32 [s]; see core.sample in docs/ops.md.
struct Sampled {
  Tensor ids_s, logprob_s;
};
inline Sampled sample(Tensor logits_sv, Tensor temperature_s, Tensor top_k_s, Tensor top_p_s, Tensor min_p_s,
                      Tensor seeds_s4, Tensor bias_sv = {}, int64_t vocab = 0) {
  const Tensor in[] = {logits_sv, temperature_s, top_k_s, top_p_s, min_p_s, seeds_s4, bias_sv};
  const Attr attrs[] = {{"vocab", vocab}};
  const auto out = recorder_of(logits_sv).ops("core.sample", in, attrs);
  return {out.at(0), out.at(1)};
}

// Updates; they write their inputs and have no outputs. Argument order as in gestalt_optimizer_step.
struct AdamW {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};
inline void adamw_update(Tensor param, Tensor master, Tensor grad, Tensor m, Tensor v, Tensor segments,
                         Tensor segment_hyper, Tensor scalars, Tensor clip, AdamW o) {
  recorder_of(param).ops("core.adamw_update", {param, master, grad, m, v, segments, segment_hyper, scalars, clip},
                         {{"beta1", o.beta1}, {"beta2", o.beta2}, {"eps", o.eps}});
}
struct Sgd {
  double momentum = 0;
  bool nesterov = false;
};
inline void sgd_update(Tensor param, Tensor master, Tensor grad, Tensor momentum, Tensor segments, Tensor segment_hyper,
                       Tensor scalars, Tensor clip, Sgd o) {
  recorder_of(param).ops("core.sgd_update", {param, master, grad, momentum, segments, segment_hyper, scalars, clip},
                         {{"momentum", o.momentum}, {"nesterov", o.nesterov}});
}
struct Lion {
  double beta1 = 0.9, beta2 = 0.99;
};
inline void lion_update(Tensor param, Tensor master, Tensor grad, Tensor m, Tensor segments, Tensor segment_hyper,
                        Tensor scalars, Tensor clip, Lion o) {
  recorder_of(param).ops("core.lion_update", {param, master, grad, m, segments, segment_hyper, scalars, clip},
                         {{"beta1", o.beta1}, {"beta2", o.beta2}});
}
// average = decay average + (1 - decay) x
inline void ema_update(Tensor average, Tensor x, double decay) {
  recorder_of(average).ops("core.ema_update", {average, x}, {{"decay", decay}});
}
// loss_scale f32 [], good_steps i32 [], finite bool [].
struct LossScale {
  double growth = 2, backoff = 0.5;
  int64_t interval = 2000;
  double min = 1, max = 16777216;
};
inline void loss_scale_update(Tensor loss_scale, Tensor good_steps, Tensor finite, LossScale o) {
  recorder_of(loss_scale)
      .ops("core.loss_scale_update", {loss_scale, good_steps, finite},
           {{"growth", o.growth}, {"backoff", o.backoff}, {"interval", o.interval}, {"min", o.min}, {"max", o.max}});
}
// Muon's iteration: singular values towards 1.
inline Tensor newton_schulz(Tensor x_mn, int64_t steps = 5) {
  return recorder_of(x_mn).op("core.newton_schulz", {x_mn}, {{"steps", steps}});
}

}  // namespace gestalt::ops
