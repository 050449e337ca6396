#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace gestalt::core {

// SHA-256 of a stream of bytes.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(const void* data, size_t bytes);
  void update(std::string_view text) { update(text.data(), text.size()); }
  // Ends the stream: neither update nor finish may follow.
  std::array<uint8_t, 32> finish();
  std::string finish_hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);
std::string sha256_file(const std::filesystem::path& path);

std::string to_hex(const uint8_t* data, size_t bytes);

}  // namespace gestalt::core
