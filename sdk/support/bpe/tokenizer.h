// Byte-level byte-pair encoding: text to ids and back. decode(encode(x)) == x for every byte string.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/bpe/load.h"
#include "support/bpe/merge.h"
#include "support/bpe/scanner.h"

namespace gestalt::support::bpe {

// How special tokens spelled in the text are taken.
enum class Specials { kAsText, kAllow, kRefuse };

struct Roles {
  std::string bos, eos, pad, unk;  // texts of special tokens; empty: none
};

class Tokenizer {
 public:
  // `pattern` as for Pattern; empty: what the files say. Special tokens: those of the files, those that go with a
  // published pattern's name where their ids are free, and `more`.
  Tokenizer(Loaded loaded, const std::string& pattern, const std::vector<Special>& more = {}, Roles roles = {});

  // The special token that the files put before every text; -1: none.
  int64_t begin() const { return begin_; }

  // What one thread encodes with.
  struct Scratch {
    std::unique_ptr<Scanner> scanner;  // custom patterns only
    MergeScratch merge;
  };
  Scratch make_scratch() const;

  // Appends the ids of `text`. With kRefuse a special token in the text is a DATA_ERROR naming it and its byte offset.
  void encode(std::string_view text, Specials specials, Scratch* scratch, std::vector<int32_t>* ids) const;
  // Appends the bytes of `ids`. INVALID_ARGUMENT for an id that is not assigned.
  void decode(std::span<const int32_t> ids, std::string* bytes) const;

  int64_t vocab_size() const { return vocabulary_.size(); }
  // By role ("bos", "eos", "pad", "unk") or by a special token's text; -1 if there is none.
  int64_t special(std::string_view role) const;
  // SHA-256 over tokens, merges, pattern and special tokens.
  const std::array<uint8_t, 32>& fingerprint() const { return fingerprint_; }

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const std::vector<Special>& specials() const { return specials_; }
  const Pattern& pattern() const { return pattern_; }

 private:
  void encode_plain(std::string_view text, Scratch* scratch, std::vector<int32_t>* ids) const;
  // The first special token at or after `from`: its place and index; npos if there is none. The longest one wins.
  size_t find_special(std::string_view text, size_t from, size_t* index) const;
  void make_fingerprint(const std::vector<Vocabulary::Listed>& listed);

  Vocabulary vocabulary_;
  Pattern pattern_;
  std::vector<Special> specials_;  // longest first
  std::array<uint8_t, 256> starts_special_{};
  Roles roles_;
  int64_t begin_ = -1;
  std::array<uint8_t, 32> fingerprint_{};
};

}  // namespace gestalt::support::bpe
