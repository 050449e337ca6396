// The keys that a decoder hands down to its blocks.
#pragma once

#include "support/rotary_keys.h"

namespace gestalt::decoder {

inline constexpr ConfigKey kBlockKeys[] = {
    {.name = "hidden", .type = "i64", .min = "1", .doc = "width", .required = true},
    {.name = "layers", .type = "i64", .min = "1", .doc = "depth of the stack", .required = true},
    {.name = "heads", .type = "i64", .min = "1", .doc = "query heads", .required = true},
    {.name = "kv_heads", .type = "i64", .default_value = "0", .min = "0", .doc = "key/value heads; 0: as many as query heads"},
    {.name = "head_size", .type = "i64", .default_value = "0", .min = "0", .doc = "0: hidden / heads"},
    {.name = "ffn", .type = "i64", .min = "1", .doc = "inner width of the MLP", .required = true},
    {.name = "activation", .type = "str", .default_value = "'gelu'", .choices = "gelu|gelu_erf|silu|relu|relu2|swiglu|geglu|geglu_erf|reglu", .doc = "of the MLP"},
    {.name = "norm", .type = "str", .default_value = "'rms'", .choices = "rms|layer", .doc = "kind of the norms"},
    {.name = "norm_eps", .type = "f64", .default_value = "1e-5", .min = "0.0", .doc = "of the norms"},
    {.name = "norm_offset", .type = "f64", .default_value = "0.0", .when = "norm=rms", .doc = "added to the norms' weights"},
    {.name = "norm_placement", .type = "str", .default_value = "'before'", .choices = "before|after|both", .doc = "of the blocks' norms: at the branch's input, its output, or both"},
    {.name = "positions", .type = "str", .default_value = "'rotary'", .choices = "rotary|learned|none", .doc = "where order comes from"},
    {.name = "attention_bias", .type = "bool", .default_value = "false", .doc = "biases of all of the attention's projections"},
    {.name = "qkv_bias", .type = "bool", .default_value = "false", .doc = "biases of the projections to queries, keys and values"},
    {.name = "qk_norm", .type = "str", .default_value = "'none'", .choices = "none|head|projection", .doc = "RMS norm of queries and keys: of each head, or of all heads at once"},
    {.name = "attention_scale", .type = "f64", .default_value = "0.0", .min = "0.0", .doc = "factor on the scores; 0: 1 / sqrt(head size)"},
    {.name = "attention_softcap", .type = "f64", .default_value = "0.0", .min = "0.0", .doc = "scores stay within +- this; 0: no cap"},
    {.name = "attention_sinks", .type = "bool", .default_value = "false", .doc = "each head may attend to nothing, with a logit that is learned"},
    {.name = "attention_gate", .type = "bool", .default_value = "false", .doc = "what the heads give is multiplied by a sigmoid of the input"},
    {.name = "window", .type = "i64", .default_value = "0", .min = "0", .doc = "a token sees itself and the window - 1 before it; 0: all"},
    {.name = "mlp_bias", .type = "bool", .default_value = "false", .doc = "biases of the MLP"},
    {.name = "dropout", .type = "f64", .default_value = "0.0", .min = "0.0", .max = "0.99", .doc = "of every residual branch and of the embedding"},
    {.name = "init_std", .type = "f64", .default_value = "0.02", .min = "0.0", .doc = "deviation of initial weights"}};

// More keys, then those of a block and of its rotary positions.
template <size_t N>
constexpr auto with_block_keys(const ConfigKey (&more)[N]) {
  return support::joined(more, support::joined(kBlockKeys, support::rotary_keys("positions=rotary")));
}

}  // namespace gestalt::decoder
