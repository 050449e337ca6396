#include "support/indexed/index_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "gestalt/error.hpp"
#include "support/sha256.h"

namespace gestalt::support::indexed {
namespace {

[[noreturn]] void bad(const MappedFile& file, uint64_t offset, const std::string& problem) {
  throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] {} at byte {}", file.path(), problem, offset));
}

template <class T>
void read_ids(const std::byte* from, int64_t count, int32_t* out, const std::string& path, uint64_t offset) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + static_cast<uint64_t>(i) * sizeof(T), sizeof(T));
    const auto wide = static_cast<int64_t>(value);
    if (wide < 0 || wide > INT32_MAX)
      throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] token id {} at byte {}, expected 0 to {}", path, wide,
                                                  offset + static_cast<uint64_t>(i) * sizeof(T), INT32_MAX));
    out[i] = static_cast<int32_t>(wide);
  }
}

void hash_file(const MappedFile& file, support::Sha256* hash) {
  constexpr uint64_t kWhole = uint64_t{64} << 20, kBlocks = 1024, kBlock = 64 << 10;
  hash->update_u64(file.size());
  if (file.size() <= kWhole) return hash->update(file.data(), file.size());
  const uint64_t step = (file.size() - kBlock) / (kBlocks - 1);
  for (uint64_t b = 0; b < kBlocks; ++b) hash->update(file.data() + b * step, kBlock);
}

}  // namespace

std::string_view name_of(TokenType type) {
  constexpr std::string_view kNames[] = {"", "u8", "i8", "i16", "i32", "i64", "f64", "f32", "u16"};
  return kNames[static_cast<uint8_t>(type)];
}

TokenType type_for_vocabulary(int64_t vocab_size) {
  return vocab_size > 0 && vocab_size < 65500 ? TokenType::kU16 : TokenType::kI32;
}

IndexFile::IndexFile(const std::string& prefix) : prefix_(prefix), index_(prefix + ".idx"), bin_(prefix + ".bin") {
  check_header();
  check_sequences();
}

void IndexFile::check_header() {
  const uint64_t size = index_.size();
  if (size < kIndexHeader) bad(index_, size, fmt::format("the file ends, expected a header of {} bytes", kIndexHeader));
  if (std::memcmp(index_.data(), kIndexMagic, sizeof kIndexMagic) != 0) bad(index_, 0, "the magic is not MMIDIDX");
  const auto u64 = [&](uint64_t offset) {
    uint64_t value;
    std::memcpy(&value, index_.data() + offset, 8);
    return value;
  };
  if (u64(9) != 1) bad(index_, 9, fmt::format("version is {}, expected 1", u64(9)));
  const auto code = static_cast<uint8_t>(index_.data()[17]);
  if (code < 1 || code > 8) bad(index_, 17, fmt::format("type code is {}, expected 1 to 8", code));
  type_ = static_cast<TokenType>(code);
  const uint64_t sequences = u64(18), boundaries = u64(26), room = size - kIndexHeader;
  if (sequences > room / 12)
    bad(index_, 18, fmt::format("{} sequences need more than the file's {} bytes", sequences, size));
  if (boundaries < 1 || boundaries > (room - 12 * sequences) / 8)
    bad(index_, 26, fmt::format("{} document boundaries do not fit the file's {} bytes", boundaries, size));
  const uint64_t used = 12 * sequences + 8 * boundaries;
  if (used != room && used + sequences != room)
    bad(index_, kIndexHeader + used,
        fmt::format("{} bytes are left after the arrays, expected none or {} modes", room - used, sequences));
  num_sequences_ = static_cast<int64_t>(sequences);
  num_boundaries_ = static_cast<int64_t>(boundaries);
  lengths_ = index_.data() + kIndexHeader;
  pointers_ = lengths_ + 4 * sequences;
  boundaries_ = pointers_ + 8 * sequences;
  modes_ = used == room ? nullptr : boundaries_ + 8 * boundaries;
}

void IndexFile::check_sequences() {
  const uint64_t item = size_of(type_), bin = bin_.size();
  for (int64_t i = 0; i < num_sequences_; ++i) {
    const int64_t n = length(i), at = pointer(i);
    if (n < 0)
      bad(index_, static_cast<uint64_t>(lengths_ - index_.data()) + 4 * static_cast<uint64_t>(i),
          fmt::format("sequence {} has length {}, expected 0 or more", i, n));
    const uint64_t bytes = static_cast<uint64_t>(n) * item;
    if (at < 0 || static_cast<uint64_t>(at) > bin || bytes > bin - static_cast<uint64_t>(at))
      bad(index_, static_cast<uint64_t>(pointers_ - index_.data()) + 8 * static_cast<uint64_t>(i),
          fmt::format("sequence {} is at {} with {} bytes, outside the {} bytes of {}", i, at, bytes, bin,
                      bin_.path()));
    num_tokens_ += n;
    max_length_ = std::max(max_length_, n);
  }
  int64_t last = 0;
  for (int64_t d = 0; d < num_boundaries_; ++d) {
    const int64_t at = boundary(d);
    const bool wrong = d == 0 ? at != 0 : at < last || at > num_sequences_;
    if (wrong || (d + 1 == num_boundaries_ && at != num_sequences_))
      bad(index_, static_cast<uint64_t>(boundaries_ - index_.data()) + 8 * static_cast<uint64_t>(d),
          fmt::format("document boundary {} is {}, expected rising values from 0 to {}", d, at, num_sequences_));
    last = at;
  }
}

void IndexFile::read(int64_t sequence, int64_t offset, int64_t count, int32_t* out) const {
  if (sequence < 0 || sequence >= num_sequences_ || offset < 0 || count < 0 || offset > length(sequence) - count)
    throw InvalidArgument(
        fmt::format("[{}] tokens {} to {} of sequence {} do not exist", prefix_, offset, offset + count, sequence));
  const uint64_t at = static_cast<uint64_t>(pointer(sequence)) + static_cast<uint64_t>(offset) * size_of(type_);
  const std::byte* from = bin_.data() + at;
  switch (type_) {
    case TokenType::kU8:
      return read_ids<uint8_t>(from, count, out, bin_.path(), at);
    case TokenType::kI8:
      return read_ids<int8_t>(from, count, out, bin_.path(), at);
    case TokenType::kI16:
      return read_ids<int16_t>(from, count, out, bin_.path(), at);
    case TokenType::kU16:
      return read_ids<uint16_t>(from, count, out, bin_.path(), at);
    case TokenType::kI32:
      return read_ids<int32_t>(from, count, out, bin_.path(), at);
    case TokenType::kI64:
      return read_ids<int64_t>(from, count, out, bin_.path(), at);
    case TokenType::kF32:
    case TokenType::kF64:
      break;
  }
  throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] holds {} (type code at byte 17), expected a type of integers",
                                              index_.path(), name_of(type_)));
}

std::array<uint8_t, 32> IndexFile::digest() const {
  support::Sha256 hash;
  hash_file(index_, &hash);
  hash_file(bin_, &hash);
  return hash.finish();
}

}  // namespace gestalt::support::indexed
