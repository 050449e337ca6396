#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugins/task_data/tokenize.h"
#include "support/text_input/input.h"

namespace gestalt::task_data {

// One document as it was read; of JSONL still the line.
struct RawDocument {
  std::string text;
  const std::string* path = nullptr;
  uint64_t line = 0;  // where it starts
  bool jsonl = false;
};

// Reads documents from one file after the other.
class DocumentReader {
 public:
  explicit DocumentReader(const TokenizeOptions& options);
  bool next(RawDocument* document);
  uint64_t read_bytes() const { return done_bytes_ + (input_ ? input_->packed_bytes() : 0); }
  uint64_t all_bytes() const { return all_bytes_; }

 private:
  bool open_next();
  bool next_in_file(RawDocument* document);

  const TokenizeOptions& options_;
  size_t num_opened_ = 0;
  std::unique_ptr<support::text_input::InputStream> input_;
  std::unique_ptr<support::text_input::LineReader> lines_;
  bool jsonl_ = false, at_start_ = false, whole_taken_ = false;
  uint64_t done_bytes_ = 0, all_bytes_ = 0;
};

// The text of a document. DATA_ERROR says what is wrong with a JSONL line.
std::string text_of(RawDocument&& document, const std::string& key);

}  // namespace gestalt::task_data
