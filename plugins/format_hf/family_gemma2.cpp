// Gemma 2: four norms of 1 + weight, softcaps, a scaled embedding, a window on every second layer.
#include <cmath>

#include "plugins/format_hf/llama_tensors.h"

namespace gestalt::format_hf {
namespace {

constexpr KeyRule kKeys[] = {
    {"vocab", "vocab_size", KeyKind::kInteger, "256000"},
    {"hidden", "hidden_size", KeyKind::kInteger, "2304"},
    {"ffn", "intermediate_size", KeyKind::kInteger, "9216"},
    {"layers", "num_hidden_layers", KeyKind::kInteger, "26"},
    {"heads", "num_attention_heads", KeyKind::kInteger, "8"},
    {"kv_heads", "num_key_value_heads", KeyKind::kInteger, "4"},
    {"head_size", "head_dim", KeyKind::kInteger, "256"},
    {"seq_len", "max_position_embeddings", KeyKind::kInteger, "8192"},
    {"norm_eps", "rms_norm_eps", KeyKind::kReal, "1e-6"},
    {"tied", "tie_word_embeddings", KeyKind::kBoolean, "true"},
    {"init_std", "initializer_range", KeyKind::kReal, "0.02"},
    {"attention_bias", "attention_bias", KeyKind::kBoolean, "false"},
    {"attention_softcap", "attn_logit_softcapping", KeyKind::kReal},
    {"logit_softcap", "final_logit_softcapping", KeyKind::kReal},
};

constexpr TensorRule kTensors[] = {
    {"layers.*.attention_post_norm.weight", {"model.layers.*.post_attention_layernorm.weight"}},
    {"layers.*.mlp_norm.weight", {"model.layers.*.pre_feedforward_layernorm.weight"}},
    {"layers.*.mlp_post_norm.weight", {"model.layers.*.post_feedforward_layernorm.weight"}},
};

void more(const support::Json& config, ModelKeys& out) {
  out.set("activation", gated_activation(config.str("hidden_activation", "gelu_pytorch_tanh")));
  set_rope(config, out);
  out.set("norm_placement", "both");
  out.set("norm_offset", 1.0);
  out.set("embedding_scale", std::sqrt(static_cast<double>(out.integer("hidden"))));
  out.set("attention_scale", 1.0 / std::sqrt(config.f64("query_pre_attn_scalar", 256.0)));
  set_windows(config, out.integer("layers"), config.i64("sliding_window", 4096), [](int64_t i) { return i % 2 == 0; },
              out);
}

constexpr Family kFamily = {.model_type = "gemma2",
                        .keys = kKeys,
                        .tensors = kTensors,
                        .more_tensors = kLlamaTensors,
                        .ignored = kComputedTables,
                        .optional_prefix = "model.",
                        .more = more};
GESTALT_HF_FAMILY(kFamily)

}  // namespace
}  // namespace gestalt::format_hf
