// Qwen 2: biases on queries, keys and values only; the window only lives when it is switched on.
#include "plugins/format_hf/llama_tensors.h"

namespace gestalt::format_hf {
namespace {

constexpr KeyRule kKeys[] = {
    {"vocab", "vocab_size", KeyKind::kInteger, "151936"},
    {"hidden", "hidden_size", KeyKind::kInteger, "4096"},
    {"ffn", "intermediate_size", KeyKind::kInteger, "22016"},
    {"layers", "num_hidden_layers", KeyKind::kInteger, "32"},
    {"heads", "num_attention_heads", KeyKind::kInteger, "32"},
    {"kv_heads", "num_key_value_heads", KeyKind::kInteger, "32"},
    {"head_size", "head_dim", KeyKind::kInteger},
    {"seq_len", "max_position_embeddings", KeyKind::kInteger, "32768"},
    {"norm_eps", "rms_norm_eps", KeyKind::kReal, "1e-6"},
    {"tied", "tie_word_embeddings", KeyKind::kBoolean, "false"},
    {"init_std", "initializer_range", KeyKind::kReal, "0.02"},
};

void more(const support::Json& config, ModelKeys& out) {
  out.set("activation", gated_activation(config.str("hidden_act", "silu")));
  set_rope(config, out);
  out.set("qkv_bias", true);
  if (config.boolean("use_sliding_window", false)) {
    const int64_t full = config.i64("max_window_layers", 28);
    set_windows(config, out.integer("layers"), config.i64("sliding_window", 4096), [&](int64_t i) { return i >= full; },
                out);
  }
}

constexpr Family kFamily = {.model_type = "qwen2",
                        .keys = kKeys,
                        .tensors = {},
                        .more_tensors = kLlamaTensors,
                        .ignored = kComputedTables,
                        .optional_prefix = "model.",
                        .more = more};
GESTALT_HF_FAMILY(kFamily)

}  // namespace
}  // namespace gestalt::format_hf
