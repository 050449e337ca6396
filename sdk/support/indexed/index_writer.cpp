#include "support/indexed/index_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "gestalt/error.hpp"

namespace gestalt::support::indexed {
namespace {

constexpr size_t kBuffer = 1 << 20;

template <class T>
void append(std::vector<std::byte>* out, const T* data, size_t num) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  out->insert(out->end(), bytes, bytes + num * sizeof(T));
}

}  // namespace

int64_t num_ids(TokenType type) {
  switch (type) {
    case TokenType::kU8:
      return 1 << 8;
    case TokenType::kI8:
      return 1 << 7;
    case TokenType::kI16:
      return 1 << 15;
    case TokenType::kU16:
      return 1 << 16;
    case TokenType::kI32:
    case TokenType::kI64:
      return int64_t{1} << 31;
    case TokenType::kF32:
    case TokenType::kF64:
      break;
  }
  throw InvalidArgument(fmt::format("[index] got the type {}, expected one of integers", name_of(type)));
}

IndexWriter::IndexWriter(std::string prefix, TokenType type, int64_t vocab_size)
    : prefix_(std::move(prefix)), type_(type), limit_(num_ids(type)) {
  if (vocab_size < 0 || vocab_size > limit_)
    throw InvalidArgument(
        fmt::format("[index] type {} holds ids below {}, got a vocabulary of {}", name_of(type), limit_, vocab_size));
  if (vocab_size > 0) limit_ = vocab_size;
  bin_ = std::make_unique<support::AtomicFile>(prefix_ + ".bin");
  buffer_.reserve(kBuffer + 64);
}

void IndexWriter::flush() {
  bin_->write(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void IndexWriter::add(std::span<const int32_t> ids) {
  if (ids.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] a sequence has {} tokens, expected at most {}; cut the document",
                                                prefix_, ids.size(), std::numeric_limits<int32_t>::max()));
  const uint64_t item = size_of(type_);
  for (const int32_t id : ids) {
    if (id < 0 || id >= limit_)
      throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] document {} holds the id {}, expected 0 to {}", prefix_,
                                                  num_documents(), id, limit_ - 1));
    const auto wide = static_cast<int64_t>(id);  // little endian: the low bytes come first
    const auto* bytes = reinterpret_cast<const std::byte*>(&wide);
    buffer_.insert(buffer_.end(), bytes, bytes + item);
    if (buffer_.size() >= kBuffer) flush();
  }
  lengths_.push_back(static_cast<int32_t>(ids.size()));
  num_tokens_ += static_cast<int64_t>(ids.size());
}

void IndexWriter::end_document() { boundaries_.push_back(num_sequences()); }

void IndexWriter::finish() {
  if (boundaries_.back() != num_sequences())
    throw InvalidArgument(fmt::format("[{}] the last document is not ended", prefix_));
  flush();
  support::AtomicFile index(prefix_ + ".idx");
  std::vector<std::byte> out;
  append(&out, kIndexMagic, sizeof kIndexMagic);
  const uint64_t version = 1, sequences = lengths_.size(), boundaries = boundaries_.size();
  append(&out, &version, 1);
  append(&out, &type_, 1);
  append(&out, &sequences, 1);
  append(&out, &boundaries, 1);
  append(&out, lengths_.data(), lengths_.size());
  index.write(out.data(), out.size());
  out.clear();
  int64_t at = 0;
  for (const int32_t length : lengths_) {
    append(&out, &at, 1);
    at += static_cast<int64_t>(length) * static_cast<int64_t>(size_of(type_));
    if (out.size() < kBuffer) continue;
    index.write(out.data(), out.size());
    out.clear();
  }
  append(&out, boundaries_.data(), boundaries_.size());
  index.write(out.data(), out.size());
  // An old index must never meet the new tokens.
  unlink((prefix_ + ".idx").c_str());
  bin_->commit();
  index.commit();
}

}  // namespace gestalt::support::indexed
