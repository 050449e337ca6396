#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "support/bpe/scanner.h"
#include "support/bpe/vocabulary.h"

namespace gestalt::support::bpe {

// Learns merges from text. Ids 0 to 255 are the bytes, then one id for each merge: the most frequent pair of
// neighbouring tokens inside pieces, of equals the one with the smallest ids. The same text gives the same bytes of
// output, whatever its division into calls of `add` at piece borders.
class Trainer {
 public:
  explicit Trainer(const Pattern& pattern);

  void add(std::string_view text);
  // `num_tokens` (at least 256, bytes included). DATA_ERROR when the text gives fewer pairs that occur twice.
  Vocabulary train(int64_t num_tokens);
  uint64_t num_distinct_pieces() const { return counts_.size(); }

 private:
  std::unique_ptr<Scanner> scanner_;
  std::unordered_map<std::string, int64_t> counts_;
};

}  // namespace gestalt::support::bpe
