#include "support/utf8.h"

namespace gestalt::support {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Decoded {
  CodePoint point;
  bool truncated = false;  // the text ends inside a sequence that was valid so far
};

// Table 3-7 of the Unicode standard: the range of the second byte depends on the first.
Decoded decode(std::string_view text, uint64_t pos) noexcept {
  Decoded result;
  if (pos >= text.size()) return result;
  const auto byte = [&](uint64_t i) { return static_cast<unsigned char>(text[pos + i]); };
  const uint32_t first = byte(0);
  result.point = {0xFFFD, 1, false};
  if (first < 0x80) {
    result.point = {first, 1, true};
    return result;
  }
  uint32_t length = 0, low = 0x80, high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return result;
  }
  uint32_t value = first & (0x7Fu >> length);
  for (uint32_t i = 1; i < length; ++i) {
    result.point.size = i;
    if (pos + i >= text.size()) {
      result.truncated = true;
      return result;
    }
    const uint32_t next = byte(i);
    if (next < low || next > high) return result;
    value = value << 6 | (next & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  result.point = {value, length, true};
  return result;
}

}  // namespace

CodePoint next_code_point(std::string_view text, uint64_t pos) noexcept { return decode(text, pos).point; }

uint64_t valid_utf8_prefix(std::string_view text) noexcept {
  uint64_t pos = 0;
  while (pos < text.size()) {
    if (static_cast<unsigned char>(text[pos]) < 0x80) {
      ++pos;
      continue;
    }
    const CodePoint point = next_code_point(text, pos);
    if (!point.valid) break;
    pos += point.size;
  }
  return pos;
}

bool valid_utf8(std::string_view text) noexcept { return valid_utf8_prefix(text) == text.size(); }

uint64_t num_code_points(std::string_view text) noexcept {
  uint64_t count = 0;
  for (uint64_t pos = 0; pos < text.size(); pos += next_code_point(text, pos).size) ++count;
  return count;
}

bool append_utf8(std::string* out, uint32_t c) {
  if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return false;
  const auto put = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
  return true;
}

void Utf8Splitter::push(std::string_view bytes, std::string* out) {
  uint64_t pos = 0;
  // A waiting start first, one byte at a time until it is decided.
  while (num_waiting_ > 0 && pos < bytes.size()) {
    waiting_[num_waiting_++ & 3] = bytes[pos++];  // never more than three wait; the mask tells the compiler
    const Decoded decoded = decode({waiting_, num_waiting_}, 0);
    if (decoded.truncated) continue;
    if (decoded.point.valid) {
      out->append(waiting_, decoded.point.size);
    } else {
      out->append(kReplacement);
      pos -= num_waiting_ - decoded.point.size;  // only the last byte can be outside the invalid prefix
    }
    num_waiting_ = 0;
  }
  while (pos < bytes.size()) {
    const Decoded decoded = decode(bytes, pos);
    if (decoded.truncated) {
      num_waiting_ = decoded.point.size;
      bytes.copy(waiting_, num_waiting_, pos);
      return;
    }
    out->append(decoded.point.valid ? bytes.substr(pos, decoded.point.size) : kReplacement);
    pos += decoded.point.size;
  }
}

void Utf8Splitter::finish(std::string* out) {
  if (num_waiting_ > 0) out->append(kReplacement);
  num_waiting_ = 0;
}

}  // namespace gestalt::support
