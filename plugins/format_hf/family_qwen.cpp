// Qwen 2 has biases on queries, keys and values, Qwen 3 norms of each query and key; in both the window only lives when
// it is switched on.
#include "plugins/format_hf/llama_parts.h"

namespace gestalt::format_hf {
namespace {

constexpr Absent kAbsent2[] = {
    {"vocab_size", "151936"},    {"hidden_size", "4096"},       {"intermediate_size", "22016"},
    {"num_hidden_layers", "32"}, {"num_attention_heads", "32"}, {"num_key_value_heads", "32"},
    {"max_position_embeddings", "32768"}, {"rms_norm_eps", "1e-6"}, {"tie_word_embeddings", "false"},
    {"initializer_range", "0.02"}};
constexpr Absent kAbsent3[] = {
    {"vocab_size", "151936"},    {"hidden_size", "4096"},       {"intermediate_size", "22016"},
    {"num_hidden_layers", "32"}, {"num_attention_heads", "32"}, {"num_key_value_heads", "32"},
    {"head_dim", "128"},         {"max_position_embeddings", "32768"}, {"rms_norm_eps", "1e-6"},
    {"tie_word_embeddings", "false"}, {"initializer_range", "0.02"}, {"attention_bias", "false"}};

void more(const ConfigReader& config, ModelKeys& out) {
  out.set("activation", gated_activation(config.str("hidden_act", "silu")));
  set_rope(config, out);
  const int64_t window = config.i64("sliding_window", 4096), full = config.i64("max_window_layers", 28);
  const bool on = config.boolean("use_sliding_window", false);
  set_windows(config, on ? window : 0, [](int64_t layer, int64_t first) { return layer >= first; }, full, out);
}

void more2(const ConfigReader& config, ModelKeys& out) {
  more(config, out);
  out.set("qkv_bias", true);
}

void more3(const ConfigReader& config, ModelKeys& out) {
  more(config, out);
  out.set("qk_norm", "head");
}

void write_more(const ModelKeys& model, support::Json& out) {
  out.set("hidden_act", hf_activation(model.str("activation")));
  write_rope(model, out);
  std::vector<bool> on;
  const int64_t window = window_of_layers(model, &on);
  out.set("use_sliding_window", window != 0);
  if (!window) return;
  out.set("sliding_window", window);
  write_layer_types(on, out);
}

constexpr Family kQwen2 = {.model_type = "qwen2",
                           .architecture = "Qwen2ForCausalLM",
                           .keys = kLlamaKeys,
                           .more_keys = {},
                           .absent = kAbsent2,
                           .tensors = {},
                           .more_tensors = kLlamaTensors,
                           .ignored = kComputedTables,
                           .harmless = {},
                           .optional_prefix = "model.",
                           .more = more2,
                           .write_more = write_more};
GESTALT_HF_FAMILY(kQwen2)

constexpr Family kQwen3 = {.model_type = "qwen3",
                           .architecture = "Qwen3ForCausalLM",
                           .keys = kLlamaKeys,
                           .more_keys = kAttentionBias,
                           .absent = kAbsent3,
                           .tensors = {},
                           .more_tensors = kLlamaTensors,
                           .ignored = kComputedTables,
                           .harmless = {},
                           .optional_prefix = "model.",
                           .more = more3,
                           .write_more = write_more};
GESTALT_HF_FAMILY(kQwen3)

}  // namespace
}  // namespace gestalt::format_hf
