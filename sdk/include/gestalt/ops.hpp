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

// Elementwise; b has a's shape, a suffix of it, or is a scalar.
inline Tensor add(Tensor a, Tensor b) { return recorder_of(a).op("core.add", {a, b}); }
inline Tensor sub(Tensor a, Tensor b) { return recorder_of(a).op("core.sub", {a, b}); }
inline Tensor mul(Tensor a, Tensor b) { return recorder_of(a).op("core.mul", {a, b}); }
inline Tensor div(Tensor a, Tensor b) { return recorder_of(a).op("core.div", {a, b}); }
inline Tensor scale(Tensor x, double factor) { return recorder_of(x).op("core.scale", {x}, {{"factor", factor}}); }
inline Tensor neg(Tensor x) { return recorder_of(x).op("core.neg", {x}); }

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
inline Tensor sum_squares(Tensor x) { return recorder_of(x).op("core.sum_squares", {x}); }

// keys i32 [t, 2] and seed i32 [4] are batch("keys") and batch("step_seed"). `use` tells the dropouts of a model apart.
inline Tensor dropout(Tensor x_th, Tensor keys, Tensor seed, double p, int64_t use, int64_t column0 = 0) {
  return recorder_of(x_th).op("core.dropout", {x_th, keys, seed}, {{"p", p}, {"use", use}, {"column0", column0}});
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

// Two matrices, or batches of them with equal leading dimensions.
inline Tensor matmul(Tensor a, Tensor b, bool trans_a = false, bool trans_b = false) {
  return recorder_of(a).op("core.matmul", {a, b}, {{"trans_a", trans_a}, {"trans_b", trans_b}});
}
// x w^T + b
inline Tensor linear(Tensor x_ti, Tensor w_oi, Tensor b_o = {}) {
  return recorder_of(x_ti).op("core.linear", {x_ti, w_oi, b_o});
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

struct AttentionOptions {
  bool causal = true;
  double scale = 0;    // 0: 1/sqrt(d)
  int64_t window = 0;  // a token sees itself and the window - 1 before it; 0: all
  double softcap = 0;  // scores become softcap tanh(score / softcap); 0: as they are
  Tensor sinks_n{};    // one more logit of a head, without a value
  Tensor bias{};       // [n, 2r + 1], added to the score: column r + key - query; r + 1 tokens a segment at most
};
// seq_starts i32 [s+1]: tokens attend inside their segment only. v's heads may have another size than q's and k's.
inline Tensor attention(Tensor q_tnd, Tensor k_tgd, Tensor v_tge, Tensor seq_starts, const AttentionOptions& o) {
  return recorder_of(q_tnd).op(
      "core.attention", {q_tnd, k_tgd, v_tge, seq_starts, o.sinks_n, o.bias},
      {{"causal", o.causal}, {"scale", o.scale}, {"window", o.window}, {"softcap", o.softcap}});
}
inline Tensor attention(Tensor q_tnd, Tensor k_tgd, Tensor v_tge, Tensor seq_starts, bool causal = true,
                        double scale = 0) {
  return recorder_of(q_tnd).op("core.attention", {q_tnd, k_tgd, v_tge, seq_starts},
                               {{"causal", causal}, {"scale", scale}});
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
// acc += x, acc f32 (f64 for f64).
inline void accumulate(Tensor acc, Tensor x) { recorder_of(acc).ops("core.accumulate", {acc, x}); }

}  // namespace gestalt::ops
