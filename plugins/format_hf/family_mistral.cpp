// Mistral: every layer looks back over the same window.
#include "plugins/format_hf/llama_tensors.h"

namespace gestalt::format_hf {
namespace {

constexpr KeyRule kKeys[] = {
    {"vocab", "vocab_size", KeyKind::kInteger, "32000"},
    {"hidden", "hidden_size", KeyKind::kInteger, "4096"},
    {"ffn", "intermediate_size", KeyKind::kInteger, "14336"},
    {"layers", "num_hidden_layers", KeyKind::kInteger, "32"},
    {"heads", "num_attention_heads", KeyKind::kInteger, "32"},
    {"kv_heads", "num_key_value_heads", KeyKind::kInteger, "8"},
    {"head_size", "head_dim", KeyKind::kInteger},
    {"seq_len", "max_position_embeddings", KeyKind::kInteger, "131072"},
    {"norm_eps", "rms_norm_eps", KeyKind::kReal, "1e-6"},
    {"tied", "tie_word_embeddings", KeyKind::kBoolean, "false"},
    {"init_std", "initializer_range", KeyKind::kReal, "0.02"},
};

void more(const support::Json& config, ModelKeys& out) {
  out.set("activation", gated_activation(config.str("hidden_act", "silu")));
  set_rope(config, out);
  // The library's default of 4096 is for a file that does not name the window; null turns it off.
  const bool named = config.find("sliding_window") != nullptr;
  set_windows(config, out.integer("layers"), config.i64("sliding_window", named ? 0 : 4096), [](int64_t) { return true; },
              out);
}

constexpr Family kFamily = {.model_type = "mistral",
                        .keys = kKeys,
                        .tensors = {},
                        .more_tensors = kLlamaTensors,
                        .ignored = kComputedTables,
                        .optional_prefix = "model.",
                        .more = more};
GESTALT_HF_FAMILY(kFamily)

}  // namespace
}  // namespace gestalt::format_hf
