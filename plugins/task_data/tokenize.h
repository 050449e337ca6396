// Text to a corpus: reads documents from files, turns them into ids with any number of workers, and writes .bin/.idx in
// the order of the input, so that the number of workers changes nothing in the bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/bpe/tokenizer.h"

namespace gestalt::task_data {

enum class Format { kByName, kText, kJsonl };
enum class Unit { kFile, kParagraph, kLine };  // what a document is in text

struct TokenizeOptions {
  std::vector<std::string> inputs;  // "-": standard input; packed files are unpacked
  std::string output;               // prefix
  Format format = Format::kByName;  // .jsonl and .json (also packed) are JSONL
  Unit unit = Unit::kFile;
  std::string key = "text";  // of a JSONL object
  int64_t num_workers = 1;
  bool append_eod = true;    // the tokenizer's eos ends every document
  bool fail_on_bad = false;  // a bad line ends the work; else it is counted
  support::bpe::Specials specials = support::bpe::Specials::kAsText;
};

struct TokenizeCounts {
  int64_t documents = 0, tokens = 0, text_bytes = 0;
  int64_t empty = 0;  // documents without text, left out
  int64_t bad = 0;
  std::vector<std::string> first_bad;  // "file:line: what is wrong", at most 10
};

struct TokenizeProgress {
  uint64_t read_bytes, all_bytes;  // of the files as they lie; all 0 when unknown
  const TokenizeCounts* counts;
};

TokenizeCounts tokenize(const support::bpe::Tokenizer& tokenizer, const TokenizeOptions& options,
                        const std::function<void(const TokenizeProgress&)>& progress);

}  // namespace gestalt::task_data
