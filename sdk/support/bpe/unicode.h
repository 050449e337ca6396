#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gestalt::support::bpe {

// What the published patterns distinguish (Unicode 16.0). Numbers are fixed by the generated table.
enum CharClass : uint8_t {
  kOther = 0,
  kSpace = 1,    // White_Space
  kNumber = 2,   // N*
  kUpper = 3,    // Lu Lt
  kLower = 4,    // Ll
  kUncased = 5,  // Lm Lo
  kMark = 6,     // M*
};

inline bool is_letter(CharClass c) { return c == kUpper || c == kLower || c == kUncased; }

extern const uint32_t kUnicodeRuns[];
extern const size_t kNumUnicodeRuns;

// Two-stage table over all code points, filled from the runs when made.
class CharClasses {
 public:
  CharClasses();
  CharClass operator()(uint32_t code) const {
    return static_cast<CharClass>(classes_[static_cast<size_t>(blocks_[code >> kShift]) << kShift | (code & kMask)]);
  }

 private:
  static constexpr uint32_t kShift = 7, kMask = (1u << kShift) - 1;
  std::vector<uint16_t> blocks_;
  std::vector<uint8_t> classes_;
};

// One character of a byte string. A byte that is not part of well-formed UTF-8 (overlong forms, surrogates and values
// above U+10FFFF are not) is a character of its own with valid == false.
struct Char {
  uint32_t code;
  uint32_t size;
  bool valid;
};

// Decodes at `p`; needs p < end.
inline Char decode_char(const uint8_t* p, const uint8_t* end) {
  const uint32_t a = p[0];
  if (a < 0x80) return {a, 1, true};
  const size_t left = static_cast<size_t>(end - p);
  const auto tail = [&](size_t i) { return (p[i] & 0xC0) == 0x80; };
  if (a >= 0xC2 && a <= 0xDF) {
    if (left >= 2 && tail(1)) return {(a & 0x1F) << 6 | (p[1] & 0x3Fu), 2, true};
  } else if (a >= 0xE0 && a <= 0xEF) {
    if (left >= 3 && tail(1) && tail(2)) {
      const uint32_t code = (a & 0x0F) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
      if (code >= 0x800 && (code < 0xD800 || code > 0xDFFF)) return {code, 3, true};
    }
  } else if (a >= 0xF0 && a <= 0xF4) {
    if (left >= 4 && tail(1) && tail(2) && tail(3)) {
      const uint32_t code = (a & 0x07) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
      if (code >= 0x10000 && code <= 0x10FFFF) return {code, 4, true};
    }
  }
  return {a, 1, false};
}

}  // namespace gestalt::support::bpe
