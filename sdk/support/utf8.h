// UTF-8: validation, decoding, and cutting a byte stream so that no code point is split.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gestalt::support {

struct CodePoint {
  uint32_t value = 0;  // U+FFFD when not valid
  uint32_t size = 0;   // bytes taken; 0 only at the end of the text
  bool valid = false;  // overlong forms, surrogates and values above U+10FFFF are not
};

// The code point at byte `pos`. An invalid sequence is taken as its longest prefix that could have been valid, at least
// one byte, as the Unicode standard recommends.
CodePoint next_code_point(std::string_view text, uint64_t pos) noexcept;

bool valid_utf8(std::string_view text) noexcept;
// Bytes before the first invalid or truncated sequence.
uint64_t valid_utf8_prefix(std::string_view text) noexcept;
uint64_t num_code_points(std::string_view text) noexcept;  // each invalid sequence counts as one

// Nothing is appended for a surrogate or a value above U+10FFFF, and the result is false.
bool append_utf8(std::string* out, uint32_t code_point);

// Takes bytes as they arrive and gives out whole code points; at most three bytes wait. Invalid sequences come out as
// U+FFFD, so the output is valid UTF-8 always.
class Utf8Splitter {
 public:
  void push(std::string_view bytes, std::string* out);
  void finish(std::string* out);  // what waits becomes U+FFFD
  uint64_t num_waiting() const noexcept { return num_waiting_; }

 private:
  char waiting_[4] = {};
  uint32_t num_waiting_ = 0;
};

}  // namespace gestalt::support
