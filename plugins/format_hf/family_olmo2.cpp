// OLMo 2: norms after the branches, and over whole queries and keys.
#include "plugins/format_hf/llama_tensors.h"

namespace gestalt::format_hf {
namespace {

constexpr KeyRule kKeys[] = {
    {"vocab", "vocab_size", KeyKind::kInteger, "50304"},
    {"hidden", "hidden_size", KeyKind::kInteger, "4096"},
    {"ffn", "intermediate_size", KeyKind::kInteger, "11008"},
    {"layers", "num_hidden_layers", KeyKind::kInteger, "32"},
    {"heads", "num_attention_heads", KeyKind::kInteger, "32"},
    {"kv_heads", "num_key_value_heads", KeyKind::kInteger},
    {"head_size", "head_dim", KeyKind::kInteger},
    {"seq_len", "max_position_embeddings", KeyKind::kInteger, "2048"},
    {"norm_eps", "rms_norm_eps", KeyKind::kReal, "1e-5"},
    {"tied", "tie_word_embeddings", KeyKind::kBoolean, "false"},
    {"init_std", "initializer_range", KeyKind::kReal, "0.02"},
    {"attention_bias", "attention_bias", KeyKind::kBoolean, "false"},
};

constexpr TensorRule kTensors[] = {
    {"layers.*.attention_post_norm.weight", {"model.layers.*.post_attention_layernorm.weight"}},
    {"layers.*.mlp_post_norm.weight", {"model.layers.*.post_feedforward_layernorm.weight"}},
};

void more(const support::Json& config, ModelKeys& out) {
  out.set("activation", gated_activation(config.str("hidden_act", "silu")));
  set_rope(config, out);
  out.set("qk_norm", "projection");
  out.set("norm_placement", "after");
}

constexpr Family kFamily = {.model_type = "olmo2",
                        .keys = kKeys,
                        .tensors = kTensors,
                        .more_tensors = kLlamaTensors,
                        .ignored = kComputedTables,
                        .optional_prefix = "model.",
                        .more = more};
GESTALT_HF_FAMILY(kFamily)

}  // namespace
}  // namespace gestalt::format_hf
