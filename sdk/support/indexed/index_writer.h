#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/file.h"
#include "support/indexed/index_file.h"

namespace gestalt::support::indexed {

// Ids from 0 that the type holds; INVALID_ARGUMENT for a type of fractions.
int64_t num_ids(TokenType type);

// Writes <prefix>.bin and <prefix>.idx. Neither exists under its name before finish, which replaces older ones.
class IndexWriter {
 public:
  // vocab_size 0: unknown. The type must hold every id of the vocabulary.
  IndexWriter(std::string prefix, TokenType type, int64_t vocab_size);

  // One sequence of the document being written. DATA_ERROR for an id outside the vocabulary or the type.
  void add(std::span<const int32_t> ids);
  void end_document();
  void finish();

  int64_t num_tokens() const { return num_tokens_; }
  int64_t num_sequences() const { return static_cast<int64_t>(lengths_.size()); }
  int64_t num_documents() const { return static_cast<int64_t>(boundaries_.size()) - 1; }

 private:
  void flush();

  std::string prefix_;
  TokenType type_;
  int64_t limit_;  // ids below this
  std::unique_ptr<support::AtomicFile> bin_;
  std::vector<std::byte> buffer_;
  std::vector<int32_t> lengths_;
  std::vector<int64_t> boundaries_{0};
  int64_t num_tokens_ = 0;
};

}  // namespace gestalt::support::indexed
