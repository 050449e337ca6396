#include "core/base/hash.h"

#include <vector>

#include <openssl/evp.h>

#include "core/base/error.h"
#include "core/base/file.h"

namespace gestalt::core {

struct Sha256::Context {
  EVP_MD_CTX* handle = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(handle); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  if (!context_->handle || EVP_DigestInit_ex(context_->handle, EVP_sha256(), nullptr) != 1)
    fail(GESTALT_INTERNAL, "[sha256] the cryptographic library offers no SHA-256");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(const void* data, size_t bytes) {
  if (EVP_DigestUpdate(context_->handle, data, bytes) != 1)
    fail(GESTALT_INTERNAL, "[sha256] update of {} bytes refused", bytes);
}

std::array<uint8_t, 32> Sha256::finish() {
  std::array<uint8_t, 32> digest{};
  unsigned size = 0;
  if (EVP_DigestFinal_ex(context_->handle, digest.data(), &size) != 1 || size != digest.size())
    fail(GESTALT_INTERNAL, "[sha256] digest has {} bytes, expected {}", size, digest.size());
  return digest;
}

std::string Sha256::finish_hex() {
  const auto digest = finish();
  return to_hex(digest.data(), digest.size());
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish_hex();
}

std::string sha256_file(const std::filesystem::path& path) {
  InputFile file(path);
  Sha256 hash;
  std::vector<char> chunk(1 << 18);
  while (const size_t n = file.read(chunk.data(), chunk.size())) hash.update(chunk.data(), n);
  return hash.finish_hex();
}

std::string to_hex(const uint8_t* data, size_t bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < bytes; ++i) {
    out += kDigits[data[i] >> 4];
    out += kDigits[data[i] & 15];
  }
  return out;
}

}  // namespace gestalt::core
