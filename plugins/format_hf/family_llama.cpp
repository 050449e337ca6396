// Llama 1 to 3 and what is shaped like them.
#include "plugins/format_hf/llama_parts.h"

namespace gestalt::format_hf {
namespace {

constexpr KeyRule kBiases[] = {{"attention_bias", "attention_bias", KeyKind::kBoolean},
                               {"mlp_bias", "mlp_bias", KeyKind::kBoolean}};
constexpr Absent kAbsent[] = {
    {"vocab_size", "32000"},       {"hidden_size", "4096"},      {"intermediate_size", "11008"},
    {"num_hidden_layers", "32"},   {"num_attention_heads", "32"}, {"max_position_embeddings", "2048"},
    {"rms_norm_eps", "1e-6"},      {"tie_word_embeddings", "false"}, {"initializer_range", "0.02"},
    {"attention_bias", "false"},   {"mlp_bias", "false"}};

void more(const ConfigReader& config, ModelKeys& out) {
  out.set("activation", gated_activation(config.str("hidden_act", "silu")));
  set_rope(config, out);
}

void write_more(const ModelKeys& model, support::Json& out) {
  out.set("hidden_act", hf_activation(model.str("activation")));
  write_rope(model, out);
}

constexpr Family kFamily = {.model_type = "llama",
                            .architecture = "LlamaForCausalLM",
                            .keys = kLlamaKeys,
                            .more_keys = kBiases,
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
