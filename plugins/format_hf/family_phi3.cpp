// Phi 3: queries, keys and values in one matrix, gate and up in another; long contexts by longrope.
#include "plugins/format_hf/llama_tensors.h"

namespace gestalt::format_hf {
namespace {

constexpr KeyRule kKeys[] = {
    {"vocab", "vocab_size", KeyKind::kInteger, "32064"},
    {"hidden", "hidden_size", KeyKind::kInteger, "3072"},
    {"ffn", "intermediate_size", KeyKind::kInteger, "8192"},
    {"layers", "num_hidden_layers", KeyKind::kInteger, "32"},
    {"heads", "num_attention_heads", KeyKind::kInteger, "32"},
    {"kv_heads", "num_key_value_heads", KeyKind::kInteger},
    {"head_size", "head_dim", KeyKind::kInteger},
    {"seq_len", "max_position_embeddings", KeyKind::kInteger, "4096"},
    {"norm_eps", "rms_norm_eps", KeyKind::kReal, "1e-5"},
    {"tied", "tie_word_embeddings", KeyKind::kBoolean, "false"},
    {"init_std", "initializer_range", KeyKind::kReal, "0.02"},
};

constexpr TensorRule kTensors[] = {
    {"layers.*.attention.qkv.weight", {"model.layers.*.self_attn.qkv_proj.weight"}},
    {"layers.*.mlp.gate_up.weight", {"model.layers.*.mlp.gate_up_proj.weight"}},
};

void more(const support::Json& config, ModelKeys& out) {
  out.set("activation", gated_activation(config.str("hidden_act", "silu")));
  set_rope(config, out);
  set_windows(config, out.integer("layers"), config.i64("sliding_window", 0), [](int64_t) { return true; }, out);
}

constexpr Family kFamily = {.model_type = "phi3",
                        .keys = kKeys,
                        .tensors = kTensors,
                        .more_tensors = kLlamaTensors,
                        .ignored = kComputedTables,
                        .optional_prefix = "model.",
                        .more = more};
GESTALT_HF_FAMILY(kFamily)

}  // namespace
}  // namespace gestalt::format_hf
