// GPT-2: matrices stored [in, out], positions learned, the head is the embedding.
#include "plugins/format_hf/llama_parts.h"

namespace gestalt::format_hf {
namespace {

constexpr KeyRule kKeys[] = {
    {"vocab", "vocab_size", KeyKind::kInteger},
    {"hidden", "n_embd", KeyKind::kInteger},
    {"layers", "n_layer", KeyKind::kInteger},
    {"heads", "n_head", KeyKind::kInteger},
    {"ffn", "n_inner", KeyKind::kInteger},
    {"seq_len", "n_positions", KeyKind::kInteger},
    {"norm_eps", "layer_norm_epsilon", KeyKind::kReal},
    {"tied", "tie_word_embeddings", KeyKind::kBoolean},
    {"init_std", "initializer_range", KeyKind::kReal},
};
constexpr Absent kAbsent[] = {
    {"vocab_size", "50257"},  {"n_embd", "768"},              {"n_layer", "12"},
    {"n_head", "12"},         {"n_positions", "1024"},        {"layer_norm_epsilon", "1e-5"},
    {"tie_word_embeddings", "true"}, {"initializer_range", "0.02"}};

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

// Of heads that are not language models, of a length that is n_positions again, and of the order of rounding.
constexpr std::string_view kHarmless[] = {"n_ctx", "reorder_and_upcast_attn", "summary_activation", "summary_first_dropout",
                                          "summary_proj_to_labels", "summary_type", "summary_use_proj"};

void more(const ConfigReader& config, ModelKeys& out) {
  if (!out.find("ffn")) out.set("ffn", 4 * out.i64("hidden"));
  out.set("activation", plain_activation(config.str("activation_function", "gelu_new")));
  out.set("norm", "layer");
  out.set("positions", "learned");
  out.set("attention_bias", true);
  out.set("mlp_bias", true);
  if (!config.boolean("scale_attn_weights", true)) out.set("attention_scale", 1.0);
  config.expect("scale_attn_by_inverse_layer_idx", false);
}

void write_more(const ModelKeys& model, support::Json& out) {
  const std::string_view activation = hf_activation(model.str("activation"));
  out.set("activation_function", activation == "gelu_pytorch_tanh" ? "gelu_new" : activation);
  out.set("scale_attn_weights", model.f64("attention_scale") != 1);
}

constexpr Family kFamily = {.model_type = "gpt2",
                            .architecture = "GPT2LMHeadModel",
                            .keys = kKeys,
                            .more_keys = {},
                            .absent = kAbsent,
                            .tensors = kTensors,
                            .more_tensors = {},
                            .ignored = kIgnored,
                            .harmless = kHarmless,
                            .optional_prefix = "transformer.",
                            .more = more,
                            .write_more = write_more};
GESTALT_HF_FAMILY(kFamily)

}  // namespace
}  // namespace gestalt::format_hf
