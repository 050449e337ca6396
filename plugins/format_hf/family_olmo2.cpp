// OLMo 2: norms after the branches, and over whole queries and keys.
#include "plugins/format_hf/llama_parts.h"

namespace gestalt::format_hf {
namespace {

constexpr Absent kAbsent[] = {
    {"vocab_size", "50304"},     {"hidden_size", "4096"},         {"intermediate_size", "11008"},
    {"num_hidden_layers", "32"}, {"num_attention_heads", "32"},   {"max_position_embeddings", "2048"},
    {"rms_norm_eps", "1e-5"},    {"tie_word_embeddings", "false"}, {"initializer_range", "0.02"},
    {"attention_bias", "false"}};

constexpr TensorRule kTensors[] = {
    {"layers.*.attention_post_norm.weight", {"model.layers.*.post_attention_layernorm.weight"}},
    {"layers.*.mlp_post_norm.weight", {"model.layers.*.post_feedforward_layernorm.weight"}},
};

void more(const ConfigReader& config, ModelKeys& out) {
  out.set("activation", gated_activation(config.str("hidden_act", "silu")));
  set_rope(config, out);
  out.set("qk_norm", "projection");
  out.set("norm_placement", "after");
}

void write_more(const ModelKeys& model, support::Json& out) {
  out.set("hidden_act", hf_activation(model.str("activation")));
  write_rope(model, out);
}

constexpr Family kFamily = {.model_type = "olmo2",
                            .architecture = "Olmo2ForCausalLM",
                            .keys = kLlamaKeys,
                            .more_keys = kAttentionBias,
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
