#pragma once

#include "plugins/format_hf/family.h"

namespace gestalt::format_hf {

// What a llama layer is made of, for the families that are shaped like it.
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

}  // namespace gestalt::format_hf
