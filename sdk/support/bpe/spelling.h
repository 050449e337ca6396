// Tokens as GPT-2 spells their bytes, and vocabularies that are a list of such tokens and a list of merges.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/bpe/load.h"

namespace gestalt::support::bpe {

// GPT-2 writes byte b as a printable character: itself where Latin-1 has one, else the next one from U+0100 on.
class ByteSpelling {
 public:
  ByteSpelling();
  // False when a character stands for no byte.
  bool decode(std::string_view text, std::string* out) const;

 private:
  std::array<int16_t, 512> bytes_;
};

struct SpelledMerge {
  std::string a, b;   // bytes
  std::string where;  // for messages: "merge at byte 12"
};

// Entries that are neither a byte nor made by a merge become special tokens, but with keep_unmade only those that spell
// no bytes. The files' names are for messages.
Loaded from_spelled(const std::vector<std::pair<std::string, int64_t>>& tokens, const std::vector<SpelledMerge>& merges,
                    bool keep_unmade, const std::string& tokens_file, const std::string& merges_file);

}  // namespace gestalt::support::bpe
