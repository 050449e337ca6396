// Reader of Megatron's indexed corpora: <prefix>.idx says where each sequence of <prefix>.bin lies and of what
// sequences each document consists. Everything the index says is checked against the sizes of both files when it is
// opened.
//
//   .idx, little endian: 9 bytes "MMIDIDX\0\0", u64 version 1, u8 type code, u64 S sequences, u64 D = documents + 1,
//   i32[S] lengths in tokens, i64[S] byte offsets in .bin, i64[D] document boundaries (first sequence of each document;
//   the last equals S), and for multimodal corpora i8[S] modes.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "support/indexed/mapped_file.h"

namespace gestalt::support::indexed {

enum class TokenType : uint8_t { kU8 = 1, kI8 = 2, kI16 = 3, kI32 = 4, kI64 = 5, kF64 = 6, kF32 = 7, kU16 = 8 };

constexpr uint64_t size_of(TokenType type) {
  constexpr uint8_t kSizes[] = {0, 1, 1, 2, 4, 8, 8, 4, 2};
  return kSizes[static_cast<uint8_t>(type)];
}
std::string_view name_of(TokenType type);
// u16 below 65,500 tokens, else i32: what Megatron's preprocessing writes. An unknown vocabulary (0) is i32.
TokenType type_for_vocabulary(int64_t vocab_size);

constexpr char kIndexMagic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr uint64_t kIndexHeader = 34;

class IndexFile {
 public:
  explicit IndexFile(const std::string& prefix);

  const std::string& prefix() const { return prefix_; }
  TokenType type() const { return type_; }
  int64_t num_sequences() const { return num_sequences_; }
  int64_t num_documents() const { return num_boundaries_ - 1; }
  int64_t num_tokens() const { return num_tokens_; }
  int64_t max_length() const { return max_length_; }
  bool has_modes() const { return modes_ != nullptr; }
  uint64_t index_bytes() const { return index_.size(); }
  uint64_t bin_bytes() const { return bin_.size(); }

  int64_t length(int64_t sequence) const { return load<int32_t>(lengths_, sequence); }
  int64_t pointer(int64_t sequence) const { return load<int64_t>(pointers_, sequence); }
  int64_t boundary(int64_t document) const { return load<int64_t>(boundaries_, document); }
  int8_t mode(int64_t sequence) const { return load<int8_t>(modes_, sequence); }

  // Tokens [offset, offset + count) of a sequence, as i32. DATA_ERROR for an id that is negative or does not fit, and
  // for a type that holds no ids.
  void read(int64_t sequence, int64_t offset, int64_t count, int32_t* out) const;

  // SHA-256 over the index and the tokens. Of a file above 64 MiB: its size and 1,024 evenly spaced blocks of 64 KiB.
  std::array<uint8_t, 32> digest() const;

 private:
  template <class T>
  static T load(const std::byte* base, int64_t i) {
    T value;
    std::memcpy(&value, base + static_cast<uint64_t>(i) * sizeof(T), sizeof(T));
    return value;
  }
  void check_header();
  void check_sequences();

  std::string prefix_;
  MappedFile index_, bin_;
  TokenType type_ = TokenType::kI32;
  int64_t num_sequences_ = 0, num_boundaries_ = 0, num_tokens_ = 0, max_length_ = 0;
  const std::byte* lengths_ = nullptr;
  const std::byte* pointers_ = nullptr;
  const std::byte* boundaries_ = nullptr;
  const std::byte* modes_ = nullptr;
};

}  // namespace gestalt::support::indexed
