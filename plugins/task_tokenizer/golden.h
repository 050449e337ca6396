#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gestalt::task_tokenizer {

struct GoldenCounts {
  int64_t equal = 0;
  std::vector<std::string> different;  // "file:line: what differs"
  std::vector<std::string> not_ours;   // names of tokenizers that are no byte-level BPE here, each once
  int64_t num_not_ours = 0;            // their lines
};

// Checks a JSONL file of {"tokenizer", "text", "ids"} and {"tokenizer", "file", "count", "sha256_of_uint32le_ids"}
// lines with what lies under `files` (its subfolders included; packed files too): rank files NAME.tiktoken, and texts.
// "gpt2" is the rank file r50k_base. Both forms that a vocabulary lies there in are checked. NOT_FOUND for a file that
// is absent.
GoldenCounts check_golden(const std::string& golden, const std::string& files);

}  // namespace gestalt::task_tokenizer
