// Llama 1 to 3 and what is shaped like them.
#include "plugins/format_hf/llama_tensors.h"

namespace gestalt::format_hf {
namespace {

constexpr KeyRule kKeys[] = {
    {"vocab", "vocab_size", KeyKind::kInteger, "32000"},
    {"hidden", "hidden_size", KeyKind::kInteger, "4096"},
    {"ffn", "intermediate_size", KeyKind::kInteger, "11008"},
    {"layers", "num_hidden_layers", KeyKind::kInteger, "32"},
    {"heads", "num_attention_heads", KeyKind::kInteger, "32"},
    {"kv_heads", "num_key_value_heads", KeyKind::kInteger},
    {"head_size", "head_dim", KeyKind::kInteger},
    {"seq_len", "max_position_embeddings", KeyKind::kInteger, "2048"},
    {"norm_eps", "rms_norm_eps", KeyKind::kReal, "1e-6"},
    {"tied", "tie_word_embeddings", KeyKind::kBoolean, "false"},
    {"init_std", "initializer_range", KeyKind::kReal, "0.02"},
    {"attention_bias", "attention_bias", KeyKind::kBoolean, "false"},
    {"mlp_bias", "mlp_bias", KeyKind::kBoolean, "false"},
};

void more(const support::Json& config, ModelKeys& out) {
  out.set("activation", gated_activation(config.str("hidden_act", "silu")));
  set_rope(config, out);
}

constexpr Family kFamily = {.model_type = "llama",
                        .keys = kKeys,
                        .tensors = {},
                        .more_tensors = kLlamaTensors,
                        .ignored = kComputedTables,
                        .optional_prefix = "model.",
                        .more = more};
GESTALT_HF_FAMILY(kFamily)

}  // namespace
}  // namespace gestalt::format_hf
