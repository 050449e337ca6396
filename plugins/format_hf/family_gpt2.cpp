// GPT-2: matrices stored [in, out], positions learned, the head is the embedding.
#include "gestalt/error.hpp"
#include "plugins/format_hf/family.h"

namespace gestalt::format_hf {
namespace {

constexpr KeyRule kKeys[] = {
    {"vocab", "vocab_size", KeyKind::kInteger, "50257"},
    {"hidden", "n_embd", KeyKind::kInteger, "768"},
    {"layers", "n_layer", KeyKind::kInteger, "12"},
    {"heads", "n_head", KeyKind::kInteger, "12"},
    {"ffn", "n_inner", KeyKind::kInteger},
    {"seq_len", "n_positions", KeyKind::kInteger, "1024"},
    {"norm_eps", "layer_norm_epsilon", KeyKind::kReal, "1e-5"},
    {"tied", "tie_word_embeddings", KeyKind::kBoolean, "true"},
    {"init_std", "initializer_range", KeyKind::kReal, "0.02"},
};

constexpr TensorRule kTensors[] = {
    {"embedding.weight", {"transformer.wte.weight"}},
    {"embedding.position_weight", {"transformer.wpe.weight"}},
    {"layers.*.attention_norm.weight", {"transformer.h.*.ln_1.weight"}},
    {"layers.*.attention_norm.bias", {"transformer.h.*.ln_1.bias"}},
    {"layers.*.attention.qkv.weight", {"transformer.h.*.attn.c_attn.weight"}, true},
    {"layers.*.attention.qkv.bias", {"transformer.h.*.attn.c_attn.bias"}},
    {"layers.*.attention.out.weight", {"transformer.h.*.attn.c_proj.weight"}, true},
    {"layers.*.attention.out.bias", {"transformer.h.*.attn.c_proj.bias"}},
    {"layers.*.mlp_norm.weight", {"transformer.h.*.ln_2.weight"}},
    {"layers.*.mlp_norm.bias", {"transformer.h.*.ln_2.bias"}},
    {"layers.*.mlp.up.weight", {"transformer.h.*.mlp.c_fc.weight"}, true},
    {"layers.*.mlp.up.bias", {"transformer.h.*.mlp.c_fc.bias"}},
    {"layers.*.mlp.down.weight", {"transformer.h.*.mlp.c_proj.weight"}, true},
    {"layers.*.mlp.down.bias", {"transformer.h.*.mlp.c_proj.bias"}},
    {"final_norm.weight", {"transformer.ln_f.weight"}},
    {"final_norm.bias", {"transformer.ln_f.bias"}},
    {"head.weight", {"lm_head.weight"}},
};

// Causal masks that old versions stored.
constexpr std::string_view kIgnored[] = {"*.attn.bias", "*.attn.masked_bias"};

void more(const support::Json& config, ModelKeys& out) {
  if (!out.integer("ffn")) out.set("ffn", 4 * out.integer("hidden"));
  out.set("activation", plain_activation(config.str("activation_function", "gelu_new")));
  out.set("norm", "layer");
  out.set("positions", "learned");
  out.set("attention_bias", true);
  out.set("mlp_bias", true);
  if (!config.boolean("scale_attn_weights", true)) out.set("attention_scale", 1.0);
  if (config.boolean("scale_attn_by_inverse_layer_idx", false))
    throw Error(GESTALT_DATA_ERROR, "[scale_attn_by_inverse_layer_idx] got true, expected false");
}

constexpr Family kFamily = {.model_type = "gpt2",
                        .keys = kKeys,
                        .tensors = kTensors,
                        .more_tensors = {},
                        .ignored = kIgnored,
                        .optional_prefix = "transformer.",
                        .more = more};
GESTALT_HF_FAMILY(kFamily)

}  // namespace
}  // namespace gestalt::format_hf
