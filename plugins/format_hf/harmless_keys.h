// Keys of config.json that do not change what a causal model computes.
#pragma once

#include <string_view>

#include "plugins/format_hf/config_reader.h"

namespace gestalt::format_hf {

// Names of types and versions, what generation starts from, and what training draws at random: the run file says these.
inline constexpr std::string_view kHarmlessKeys[] = {"_attn_implementation",
                                                     "_attn_implementation_autoset",
                                                     "_name_or_path",
                                                     "architectures",
                                                     "attention_dropout",
                                                     "attn_implementation",
                                                     "attn_pdrop",
                                                     "auto_map",
                                                     "bad_words_ids",
                                                     "begin_suppress_tokens",
                                                     "bos_token_id",
                                                     "cache_implementation",
                                                     "chunk_size_feed_forward",
                                                     "decoder_start_token_id",
                                                     "diversity_penalty",
                                                     "do_sample",
                                                     "dtype",
                                                     "early_stopping",
                                                     "embd_pdrop",
                                                     "encoder_no_repeat_ngram_size",
                                                     "eos_token_id",
                                                     "exponential_decay_length_penalty",
                                                     "finetuning_task",
                                                     "forced_bos_token_id",
                                                     "forced_eos_token_id",
                                                     "hidden_dropout",
                                                     "id2label",
                                                     "label2id",
                                                     "length_penalty",
                                                     "max_length",
                                                     "min_length",
                                                     "model_type",
                                                     "no_repeat_ngram_size",
                                                     "num_beam_groups",
                                                     "num_beams",
                                                     "num_return_sequences",
                                                     "output_attentions",
                                                     "output_hidden_states",
                                                     "output_scores",
                                                     "pad_token_id",
                                                     "prefix",
                                                     "pretraining_tp",
                                                     "problem_type",
                                                     "remove_invalid_values",
                                                     "repetition_penalty",
                                                     "resid_pdrop",
                                                     "return_dict",
                                                     "return_dict_in_generate",
                                                     "sep_token_id",
                                                     "suppress_tokens",
                                                     "task_specific_params",
                                                     "temperature",
                                                     "tf_legacy_loss",
                                                     "tokenizer_class",
                                                     "top_k",
                                                     "top_p",
                                                     "torch_dtype",
                                                     "torchscript",
                                                     "transformers_version",
                                                     "typical_p",
                                                     "unk_token_id",
                                                     "use_bfloat16",
                                                     "use_cache"};

// Structures that none of the families has: they must be off.
inline constexpr std::string_view kMustBeOff[] = {"add_cross_attention", "is_decoder", "is_encoder_decoder",
                                                  "tie_encoder_decoder"};

}  // namespace gestalt::format_hf
