// Gemma 2: four norms of 1 + weight, softcaps, a scaled embedding, a window on every second layer.
#include <cmath>

#include "plugins/format_hf/llama_parts.h"

namespace gestalt::format_hf {
namespace {

constexpr KeyRule kMoreKeys[] = {
    {"attention_bias", "attention_bias", KeyKind::kBoolean},
    {"attention_softcap", "attn_logit_softcapping", KeyKind::kReal},
    {"logit_softcap", "final_logit_softcapping", KeyKind::kReal},
};
constexpr Absent kAbsent[] = {
    {"vocab_size", "256000"},    {"hidden_size", "2304"},        {"intermediate_size", "9216"},
    {"num_hidden_layers", "26"}, {"num_attention_heads", "8"},   {"num_key_value_heads", "4"},
    {"head_dim", "256"},         {"max_position_embeddings", "8192"}, {"rms_norm_eps", "1e-6"},
    {"tie_word_embeddings", "true"}, {"initializer_range", "0.02"}, {"attention_bias", "false"}};

constexpr TensorRule kTensors[] = {
    {"layers.*.attention_post_norm.weight", {"model.layers.*.post_attention_layernorm.weight"}},
    {"layers.*.mlp_norm.weight", {"model.layers.*.pre_feedforward_layernorm.weight"}},
    {"layers.*.mlp_post_norm.weight", {"model.layers.*.post_feedforward_layernorm.weight"}},
};

// Beside hidden_activation, which counts; causal models attend to what is before.
constexpr std::string_view kHarmless[] = {"hidden_act"};

void more(const ConfigReader& config, ModelKeys& out) {
  out.set("activation", gated_activation(config.str("hidden_activation", "gelu_pytorch_tanh")));
  config.expect("use_bidirectional_attention", false);
  set_rope(config, out);
  out.set("norm_placement", "both");
  out.set("norm_offset", 1.0);
  out.set("embedding_scale", std::sqrt(static_cast<double>(out.i64("hidden"))));
  out.set("attention_scale", 1.0 / std::sqrt(config.f64("query_pre_attn_scalar", 256.0)));
  set_windows(config, config.i64("sliding_window", 4096), [](int64_t layer, int64_t) { return layer % 2 == 0; }, 0, out);
}

void write_more(const ModelKeys& model, support::Json& out) {
  const std::string_view activation = hf_activation(model.str("activation"));
  out.set("hidden_act", activation);
  out.set("hidden_activation", activation);
  for (const char* cap : {"attn_logit_softcapping", "final_logit_softcapping"})
    if (out.f64(cap) == 0) out.set(cap, support::Json());
  const double scale = model.f64("attention_scale");
  // A whole number where the square of the scale is close to the inverse of one.
  const double scalar = scale == 0 ? static_cast<double>(model.i64("head_size")) : 1 / (scale * scale);
  const double whole = std::round(scalar);
  if (std::abs(scalar - whole) < 1e-9 * whole)
    out.set("query_pre_attn_scalar", static_cast<int64_t>(whole));
  else
    out.set("query_pre_attn_scalar", scalar);
  write_rope(model, out);
  std::vector<bool> on;
  out.set("sliding_window", window_of_layers(model, &on));
  write_layer_types(on, out);
}

constexpr Family kFamily = {.model_type = "gemma2",
                            .architecture = "Gemma2ForCausalLM",
                            .keys = kLlamaKeys,
                            .more_keys = kMoreKeys,
                            .absent = kAbsent,
                            .tensors = kTensors,
                            .more_tensors = kLlamaTensors,
                            .ignored = kComputedTables,
                            .harmless = kHarmless,
                            .optional_prefix = "model.",
                            .more = more,
                            .write_more = write_more};
GESTALT_HF_FAMILY(kFamily)

}  // namespace
}  // namespace gestalt::format_hf
