// Mistral: every layer looks back over the same window.
#include "plugins/format_hf/llama_parts.h"

namespace gestalt::format_hf {
namespace {

constexpr Absent kAbsent[] = {
    {"vocab_size", "32000"},     {"hidden_size", "4096"},       {"intermediate_size", "14336"},
    {"num_hidden_layers", "32"}, {"num_attention_heads", "32"}, {"num_key_value_heads", "8"},
    {"max_position_embeddings", "131072"}, {"rms_norm_eps", "1e-6"}, {"tie_word_embeddings", "false"},
    {"initializer_range", "0.02"}};

void more(const ConfigReader& config, ModelKeys& out) {
  out.set("activation", gated_activation(config.str("hidden_act", "silu")));
  set_rope(config, out);
  // The library's default of 4096 is for a file that does not name the window; null turns it off.
  const int64_t otherwise = config.has_null("sliding_window") ? 0 : 4096;
  set_windows(config, config.i64("sliding_window", otherwise), [](int64_t, int64_t) { return true; }, 0, out);
}

void write_more(const ModelKeys& model, support::Json& out) {
  out.set("hidden_act", hf_activation(model.str("activation")));
  write_rope(model, out);
  std::vector<bool> on;
  const int64_t window = window_of_layers(model, &on);
  out.set("sliding_window", window ? support::Json(window) : support::Json());
}

constexpr Family kFamily = {.model_type = "mistral",
                            .architecture = "MistralForCausalLM",
                            .keys = kLlamaKeys,
                            .more_keys = {},
                            .absent = kAbsent,
                            .tensors = {},
                            .more_tensors = kLlamaTensors,
                            .ignored = kComputedTables,
                            .harmless = {},
                            .optional_prefix = "model.",
                            .more = more,
                            .write_more = write_more};
GESTALT_HF_FAMILY(kFamily)

}  // namespace
}  // namespace gestalt::format_hf
