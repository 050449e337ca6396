#pragma once

#include <string>
#include <string_view>

namespace gestalt::format_hf {

// Files beside config.json that make up the model's tokenizer.
inline constexpr std::string_view kTokenizerFiles[] = {
    "tokenizer.json",    "tokenizer_config.json", "vocab.json",
    "merges.txt",        "tokenizer.model",       "special_tokens_map.json",
    "added_tokens.json", "chat_template.jinja",   "generation_config.json"};

// [tokenizer] of the run file, and the plugin that it needs; both empty where the folder has no tokenizer. What the
// plugin does not read it refuses when the tokenizer is used.
struct TokenizerSection {
  std::string plugin, text;
};
TokenizerSection tokenizer_section(const std::string& folder);

}  // namespace gestalt::format_hf
