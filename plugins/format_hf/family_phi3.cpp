// Phi 3: queries, keys and values in one matrix, gate and up in another; long contexts by longrope.
#include "plugins/format_hf/llama_parts.h"

namespace gestalt::format_hf {
namespace {

constexpr Absent kAbsent[] = {
    {"vocab_size", "32064"},     {"hidden_size", "3072"},          {"intermediate_size", "8192"},
    {"num_hidden_layers", "32"}, {"num_attention_heads", "32"},    {"max_position_embeddings", "4096"},
    {"rms_norm_eps", "1e-5"},    {"tie_word_embeddings", "false"}, {"initializer_range", "0.02"}};

constexpr TensorRule kTensors[] = {
    {"layers.*.attention.qkv.weight", {"model.layers.*.self_attn.qkv_proj.weight"}},
    {"layers.*.mlp.gate_up.weight", {"model.layers.*.mlp.gate_up_proj.weight"}},
};

void more(const ConfigReader& config, ModelKeys& out) {
  out.set("activation", gated_activation(config.str("hidden_act", "silu")));
  config.expect("attention_bias", false);
  set_rope(config, out, 4096);
  set_windows(config, config.i64("sliding_window", 0), [](int64_t, int64_t) { return true; }, 0, out);
}

void write_more(const ModelKeys& model, support::Json& out) {
  out.set("hidden_act", hf_activation(model.str("activation")));
  write_rope(model, out);
  std::vector<bool> on;
  const int64_t window = window_of_layers(model, &on);
  out.set("sliding_window", window ? support::Json(window) : support::Json());
}

constexpr Family kFamily = {.model_type = "phi3",
                            .architecture = "Phi3ForCausalLM",
                            .keys = kLlamaKeys,
                            .more_keys = {},
                            .absent = kAbsent,
                            .tensors = kTensors,
                            .more_tensors = kLlamaTensors,
                            .ignored = kComputedTables,
                            .harmless = {},
                            .optional_prefix = "model.",
                            .more = more,
                            .write_more = write_more};
GESTALT_HF_FAMILY(kFamily)

}  // namespace
}  // namespace gestalt::format_hf
