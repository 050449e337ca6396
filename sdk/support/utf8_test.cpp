#include "support/utf8.h"

#include "tests/catch_compat.hpp"

namespace gestalt::support {

TEST_CASE("every code point survives encoding and decoding") {
  for (uint32_t value = 0; value <= 0x110000; ++value) {
    std::string text;
    const bool allowed = value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
    if (append_utf8(&text, value) != allowed) FAIL("append_utf8 of " << value);
    if (!allowed) continue;
    const CodePoint point = next_code_point(text, 0);
    if (!point.valid || point.value != value || point.size != text.size()) FAIL("decoding of " << value);
  }
}

TEST_CASE("overlong forms, surrogates, values too large and stray bytes are invalid") {
  for (const char* text : {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
                           "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\x80", "\xFF", "\xC2", "\xE2\x82", "\xC2\x41"}) {
    CHECK_FALSE(valid_utf8(text));
  }
  CHECK(valid_utf8_prefix("ab\xC3\xA9\xFFz") == 4);
}

TEST_CASE("an invalid sequence is taken as its longest prefix that could have been valid") {
  // The example of the Unicode standard, section 3.9.
  const std::string text = "\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64";
  std::string sizes;
  for (uint64_t pos = 0; pos < text.size(); pos += next_code_point(text, pos).size) {
    sizes += static_cast<char>('0' + next_code_point(text, pos).size);
  }
  CHECK(sizes == "1321111111");
  CHECK(num_code_points(text) == sizes.size());
}

TEST_CASE("the splitter gives the same text for every way to cut the bytes") {
  const std::string text =
      "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 \xFF\xE2\x82z\xF0\x9F\x98"
      "b\xE1\x80\xC2\x62\xF1\x80";
  std::string whole;
  Utf8Splitter once;
  once.push(text, &whole);
  once.finish(&whole);
  CHECK(valid_utf8(whole));
  for (size_t step = 1; step <= 5; ++step) {
    Utf8Splitter splitter;
    std::string out;
    for (size_t pos = 0; pos < text.size(); pos += step) {
      splitter.push(std::string_view(text).substr(pos, step), &out);
      CHECK(valid_utf8(out));
      CHECK(splitter.num_waiting() <= 3);
    }
    splitter.finish(&out);
    CHECK(out == whole);
  }
}

TEST_CASE("the splitter holds back the start of a code point only") {
  Utf8Splitter splitter;
  std::string out;
  splitter.push("x\xF0\x9F", &out);
  CHECK(out == "x");
  splitter.push("\x98\x80y", &out);
  CHECK(out == "x\xF0\x9F\x98\x80y");
  splitter.push("\xF0\x9F", &out);
  splitter.push("\xF0\x9F\x98\x80", &out);
  CHECK(out == "x\xF0\x9F\x98\x80y\xEF\xBF\xBD\xF0\x9F\x98\x80");
}

}  // namespace gestalt::support
