// What the families that are shaped like Llama share.
#pragma once

#include "plugins/format_hf/family.h"

namespace gestalt::format_hf {

inline constexpr KeyRule kLlamaKeys[] = {
    {"vocab", "vocab_size", KeyKind::kInteger},
    {"hidden", "hidden_size", KeyKind::kInteger},
    {"ffn", "intermediate_size", KeyKind::kInteger},
    {"layers", "num_hidden_layers", KeyKind::kInteger},
    {"heads", "num_attention_heads", KeyKind::kInteger},
    {"kv_heads", "num_key_value_heads", KeyKind::kInteger},
    {"head_size", "head_dim", KeyKind::kInteger},
    {"seq_len", "max_position_embeddings", KeyKind::kInteger},
    {"norm_eps", "rms_norm_eps", KeyKind::kReal},
    {"tied", "tie_word_embeddings", KeyKind::kBoolean},
    {"init_std", "initializer_range", KeyKind::kReal},
};
inline constexpr KeyRule kAttentionBias[] = {{"attention_bias", "attention_bias", KeyKind::kBoolean}};

inline constexpr TensorRule kLlamaTensors[] = {
    {"embedding.weight", {"model.embed_tokens.weight"}},
    {"layers.*.attention_norm.weight", {"model.layers.*.input_layernorm.weight"}},
    {"layers.*.attention.qkv.weight",
     {"model.layers.*.self_attn.q_proj.weight", "model.layers.*.self_attn.k_proj.weight",
      "model.layers.*.self_attn.v_proj.weight"}},
    {"layers.*.attention.qkv.bias",
     {"model.layers.*.self_attn.q_proj.bias", "model.layers.*.self_attn.k_proj.bias",
      "model.layers.*.self_attn.v_proj.bias"}},
    {"layers.*.attention.q_norm.weight", {"model.layers.*.self_attn.q_norm.weight"}},
    {"layers.*.attention.k_norm.weight", {"model.layers.*.self_attn.k_norm.weight"}},
    {"layers.*.attention.sinks", {"model.layers.*.self_attn.sinks"}},
    {"layers.*.attention.out.weight", {"model.layers.*.self_attn.o_proj.weight"}},
    {"layers.*.attention.out.bias", {"model.layers.*.self_attn.o_proj.bias"}},
    {"layers.*.mlp_norm.weight", {"model.layers.*.post_attention_layernorm.weight"}},
    {"layers.*.mlp.gate_up.weight", {"model.layers.*.mlp.gate_proj.weight", "model.layers.*.mlp.up_proj.weight"}},
    {"layers.*.mlp.gate_up.bias", {"model.layers.*.mlp.gate_proj.bias", "model.layers.*.mlp.up_proj.bias"}},
    {"layers.*.mlp.down.weight", {"model.layers.*.mlp.down_proj.weight"}},
    {"layers.*.mlp.down.bias", {"model.layers.*.mlp.down_proj.bias"}},
    {"final_norm.weight", {"model.norm.weight"}},
    {"head.weight", {"lm_head.weight"}},
};

// Buffers that old versions stored.
inline constexpr std::string_view kComputedTables[] = {"*.rotary_emb.inv_freq", "*.rotary_emb.cos_cached",
                                                "*.rotary_emb.sin_cached"};

// rope_theta, rope_kind and the numbers of the kind, out of the old keys (rope_theta, rope_scaling) or the new
// (rope_parameters); written as the old ones, which every version reads. original_absent: the length before the scaling
// where the file does not say; 0: max_position_embeddings.
void set_rope(const ConfigReader& config, ModelKeys& out, int64_t original_absent = 0);
void write_rope(const ModelKeys& model, support::Json& out);

// Windows by layer_types if the file has them, else by what `slides` says of each layer; the shortest period of kinds of
// layers is the pattern. window 0: none.
void set_windows(const ConfigReader& config, int64_t window, bool (*slides)(int64_t layer, int64_t number),
                 int64_t number, ModelKeys& out);
// The window of the layers that have one, 0 if none has; which they are goes into *on.
int64_t window_of_layers(const ModelKeys& model, std::vector<bool>* on);
void write_layer_types(const std::vector<bool>& sliding, support::Json& out);

// The decoder's name of an activation, DATA_ERROR for one that it does not have; and back.
std::string_view plain_activation(std::string_view hf);
std::string_view gated_activation(std::string_view hf);
std::string_view hf_activation(std::string_view name);

}  // namespace gestalt::format_hf
