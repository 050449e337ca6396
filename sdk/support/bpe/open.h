#pragma once

#include <string>
#include <vector>

#include "support/bpe/tokenizer.h"

namespace gestalt::support::bpe {

// What a configuration or a command line says about a tokenizer.
struct Source {
  std::string ranks;                        // either this
  std::string vocab, merges;                // or these two
  std::string file;                         // or a tokenizer.json
  std::string pattern;                      // empty: what the files say
  std::vector<std::string> special_tokens;  // further ones, each "<|text|>=id"
  Roles roles;
};

// CONFIG_ERROR for a source that is neither one nor the other.
Tokenizer open_tokenizer(const Source& source);

}  // namespace gestalt::support::bpe
