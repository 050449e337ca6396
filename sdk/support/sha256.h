// SHA-256 (FIPS 180-4), for fingerprints of corpora and vocabularies.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace gestalt::support {

using Digest256 = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256() noexcept;
  void update(const void* data, uint64_t bytes) noexcept;
  void update(std::string_view text) noexcept { update(text.data(), text.size()); }
  void update_u64(uint64_t value) noexcept;  // eight bytes, little endian
  // A length before the bytes, so that ("ab", "c") and ("a", "bc") differ.
  void update_field(std::string_view text) noexcept;
  Digest256 finish() noexcept;

 private:
  void block(const uint8_t* data) noexcept;

  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> buffer_{};
  uint64_t size_ = 0;
};

Digest256 sha256(std::string_view text) noexcept;
std::string hex(const Digest256& digest);

}  // namespace gestalt::support
