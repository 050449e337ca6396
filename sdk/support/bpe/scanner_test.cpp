#include "support/bpe/scanner.h"

#include "gestalt/error.hpp"
#include "support/bpe/test_data.h"

namespace gestalt::support::bpe {
namespace {

std::vector<std::string> pieces(Scanner& scanner, const std::string& text) {
  std::vector<std::string> out;
  const auto* start = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* end = start + text.size();
  for (const uint8_t* p = start; p < end;) {
    const uint8_t* q = scanner.next(start, p, end);
    REQUIRE(q > p);
    REQUIRE(q <= end);
    out.emplace_back(reinterpret_cast<const char*>(p), static_cast<size_t>(q - p));
    p = q;
  }
  return out;
}

using Pieces = std::vector<std::string>;

}  // namespace

TEST_CASE("GPT-2 pieces keep one space with the word after it") {
  auto s = Pattern("gpt2").make_scanner();
  CHECK(pieces(*s, "It's  a\n\n dog 12!") == Pieces{"It", "'s", " ", " a", "\n\n", " dog", " 12", "!"});
  CHECK(pieces(*s, "CAN'T  ") == Pieces{"CAN", "'", "T", "  "});
}

TEST_CASE("cl100k pieces cut numbers in threes and end white space at the last newline") {
  auto s = Pattern("cl100k_base").make_scanner();
  CHECK(pieces(*s, "CAN'T 12345") == Pieces{"CAN", "'T", " ", "123", "45"});
  CHECK(pieces(*s, "a \n\t\n  b") == Pieces{"a", " \n\t\n", " ", " b"});
  CHECK(pieces(*s, "(x)\r\n\r\ny") == Pieces{"(x", ")\r\n\r\n", "y"});
}

TEST_CASE("o200k pieces cut words where small letters meet capitals") {
  auto s = Pattern("o200k_base").make_scanner();
  CHECK(pieces(*s, "camelCaseHTML don't") == Pieces{"camel", "Case", "HTML", " don't"});
  CHECK(pieces(*s, "a//\n/b") == Pieces{"a", "//\n/", "b"});
  CHECK(pieces(*s,
               "\xCC\x81"
               "A") == Pieces{"\xCC\x81", "A"});
}

TEST_CASE("Bytes that are not UTF-8 count as punctuation, one character each") {
  auto s = Pattern("gpt2").make_scanner();
  CHECK(pieces(*s, "a\xFF\xC3 b") == Pieces{"a", "\xFF\xC3", " b"});
  CHECK(pieces(*s, "\xED\xA0\x80x") == Pieces{"\xED\xA0\x80", "x"});
}

TEST_CASE("Expressions other than the published ones need PCRE2") {
  if (!has_pcre2()) {
    CHECK_THROWS_AS(Pattern("a+"), Error);
    return;
  }
  auto s = Pattern("[ab]+").make_scanner();
  CHECK(pieces(*s, "abxxab\xFFz") == Pieces{"ab", "xx", "ab", "\xFF", "z"});
  CHECK_THROWS_AS(Pattern("(a"), Error);
  CHECK_THROWS_AS(Pattern(""), Error);
}

TEST_CASE("Hand-written scanners cut random text as PCRE2 does") {
  if (!has_pcre2()) {
    WARN("SKIP: built without PCRE2");
    return;
  }
  // PCRE2's Unicode version may be older than ours: code points whose class differs are left out, and counted.
  const CharClasses classes;
  std::vector<bool> same(0x110000, true);
  int64_t differ = 0;
  const char* const kSets[] = {"\\s", "\\p{N}", "[\\p{Lu}\\p{Lt}]", "\\p{Ll}", "[\\p{Lm}\\p{Lo}]", "\\p{M}"};
  std::vector<std::unique_ptr<Scanner>> sets;
  std::string all;
  for (const char* set : kSets) sets.push_back(Pattern(std::string(set) + "|a{99}").make_scanner());
  for (uint32_t code = 0x80; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    uint8_t c[4];
    size_t n = 0;
    if (code < 0x800) {
      c[n++] = static_cast<uint8_t>(0xC0 | code >> 6);
    } else if (code < 0x10000) {
      c[n++] = static_cast<uint8_t>(0xE0 | code >> 12);
      c[n++] = static_cast<uint8_t>(0x80 | (code >> 6 & 63));
    } else {
      c[n++] = static_cast<uint8_t>(0xF0 | code >> 18);
      c[n++] = static_cast<uint8_t>(0x80 | (code >> 12 & 63));
      c[n++] = static_cast<uint8_t>(0x80 | (code >> 6 & 63));
    }
    c[n++] = static_cast<uint8_t>(0x80 | (code & 63));
    // Two of the character: a set's scanner gives one at a time when it matches, both together when it does not.
    uint8_t two[8];
    std::copy(c, c + n, two);
    std::copy(c, c + n, two + n);
    CharClass theirs = kOther;
    const CharClass order[] = {kSpace, kNumber, kUpper, kLower, kUncased, kMark};
    for (size_t i = 0; i < sets.size(); ++i)
      if (sets[i]->next(two, two, two + 2 * n) == two + n) theirs = order[i];
    same[code] = theirs == classes(code);
    differ += !same[code];
  }
  INFO("code points of another class in PCRE2: " << differ);
  CHECK(differ < 20000);

  const int64_t runs = num_fuzz(1'000'000, 50'000);
  for (const char* name : {"gpt2", "cl100k_base", "o200k_base"}) {
    const Pattern pattern(name);
    auto hand = pattern.make_scanner();
    auto reference_scanner = pattern.make_pcre2_scanner();
    std::mt19937_64 random(20);
    for (int64_t i = 0; i < runs; ++i) {
      const std::string text = random_text(random, [&](uint32_t code) { return same[code]; });
      const auto* start = reinterpret_cast<const uint8_t*>(text.data());
      const uint8_t* end = start + text.size();
      for (const uint8_t* p = start; p < end;) {
        const uint8_t* q = hand->next(start, p, end);
        if (q != reference_scanner->next(start, p, end))
          FAIL(name << " differs on \"" << text << "\" at byte " << p - start);
        p = q;
      }
    }
  }
}

}  // namespace gestalt::support::bpe
