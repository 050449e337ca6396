// Cuts text into the pieces that byte-pair merging works inside: hand-written scanners for the published patterns, and
// PCRE2 for any other. Every byte lands in exactly one piece. A byte that is not part of well-formed UTF-8 counts as a
// character that is neither letter, number, mark nor space.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "support/bpe/unicode.h"

namespace gestalt::support::bpe {

enum class PatternKind { kGpt2, kCl100k, kO200k, kCustom };

class Scanner {
 public:
  virtual ~Scanner() = default;
  // The end of the piece that starts at `p` (p < end). `start` is where the text starts.
  virtual const uint8_t* next(const uint8_t* start, const uint8_t* p, const uint8_t* end) = 0;
};

// What a pattern's scanners share; scanners are made from it, one per thread.
class Pattern {
 public:
  // `text`: "gpt2", "r50k_base", "p50k_base", "cl100k_base", "o200k_base", or a regular expression. One that equals a
  // published pattern gets its hand-written scanner. Throws InvalidArgument for an expression that is wrong or,
  // where this build has no PCRE2, for any that is not published.
  explicit Pattern(std::string_view text);

  PatternKind kind() const { return kind_; }
  const std::string& regex() const { return regex_; }  // the expression itself, also when it was named
  std::unique_ptr<Scanner> make_scanner() const;
  // The same pattern run by PCRE2, to test the hand-written scanner against.
  std::unique_ptr<Scanner> make_pcre2_scanner() const;
  const CharClasses& classes() const { return *classes_; }

 private:
  PatternKind kind_ = PatternKind::kCustom;
  std::string regex_;
  std::shared_ptr<const CharClasses> classes_;
  std::shared_ptr<const void> compiled_;  // custom patterns: the compiled expression, shared by scanners
};

bool has_pcre2();

// The hand-written scanners (scanner.cpp): the end of the piece at `p`.
const uint8_t* next_gpt2(const CharClasses& classes, const uint8_t* p, const uint8_t* end);
const uint8_t* next_cl100k(const CharClasses& classes, const uint8_t* p, const uint8_t* end);
const uint8_t* next_o200k(const CharClasses& classes, const uint8_t* p, const uint8_t* end);

// scanner_pcre2.cpp, or scanner_no_pcre2.cpp where the library is absent.
std::shared_ptr<const void> compile_pcre2(const std::string& regex);
std::unique_ptr<Scanner> make_pcre2_scanner(std::shared_ptr<const void> compiled);

}  // namespace gestalt::support::bpe
