#include "support/bpe/base64.h"

#include <cstdint>

namespace gestalt::support::bpe {
namespace {

constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = bytes.size() - i < 3 ? bytes.size() - i : 3;
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) word = word << 8 | (k < n ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) out += k <= n ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

bool decode_base64(std::string_view text, std::string* bytes) {
  bytes->clear();
  if (text.size() % 4) return false;
  size_t digits = text.size();
  for (int i = 0; i < 2 && digits && text[digits - 1] == '='; ++i) --digits;
  uint32_t word = 0;
  int bits = 0;
  for (size_t i = 0; i < digits; ++i) {
    const int d = digit(text[i]);
    if (d < 0) return false;
    word = word << 6 | static_cast<uint32_t>(d);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      *bytes += static_cast<char>(word >> bits & 0xFF);
      word &= (1u << bits) - 1;
    }
  }
  return word == 0;
}

}  // namespace gestalt::support::bpe
