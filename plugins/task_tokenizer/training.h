#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/json.h"

namespace gestalt::task_tokenizer {

struct TrainOptions {
  std::vector<std::string> inputs;  // text, packed or not; "-": standard input
  std::string output;               // rank file; OUTPUT.json goes beside it
  int64_t vocab_size = 0;           // special tokens included
  std::string pattern = "gpt2";
  std::vector<std::string> specials{"<|endoftext|>"};  // the first is the eos
};

// Learns a vocabulary and writes it. The result says how large it is and its fingerprint.
support::Json train_tokenizer(const TrainOptions& options);

}  // namespace gestalt::task_tokenizer
