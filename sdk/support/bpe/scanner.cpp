#include "support/bpe/scanner.h"

namespace gestalt::support::bpe {
namespace {

constexpr uint32_t bit(CharClass c) { return 1u << c; }
constexpr uint32_t kLetters = bit(kUpper) | bit(kLower) | bit(kUncased);
constexpr uint32_t kPunctuation = bit(kOther) | bit(kMark);  // [^\s\p{L}\p{N}]
constexpr uint32_t kCapital = bit(kUpper) | bit(kUncased) | bit(kMark);
constexpr uint32_t kSmall = bit(kLower) | bit(kUncased) | bit(kMark);

struct Look {
  CharClass cls;
  uint32_t size;
  bool in(uint32_t set) const { return set >> cls & 1; }
};

Look look(const CharClasses& classes, const uint8_t* p, const uint8_t* end) {
  if (*p < 0x80) return {classes(*p), 1};
  const Char c = decode_char(p, end);
  return {c.valid ? classes(c.code) : kOther, c.size};
}

const uint8_t* run(const CharClasses& classes, const uint8_t* p, const uint8_t* end, uint32_t set) {
  while (p < end) {
    const Look at = look(classes, p, end);
    if (!at.in(set)) break;
    p += at.size;
  }
  return p;
}

bool is_newline(uint8_t c) { return c == '\r' || c == '\n'; }

// 's 't 're 've 'm 'll 'd at `p`; the number of bytes, 0 if none. Without case, U+017F is an s too.
size_t contraction(const uint8_t* p, const uint8_t* end, bool any_case) {
  const size_t left = static_cast<size_t>(end - p);
  if (left < 2 || *p != '\'') return 0;
  const auto letter = [&](size_t i) -> uint8_t {
    const uint8_t c = p[i];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<uint8_t>(c + 32) : c;
  };
  const uint8_t a = letter(1);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  if (left < 3) return 0;
  if (any_case && p[1] == 0xC5 && p[2] == 0xBF) return 3;
  const uint8_t b = letter(2);
  return ((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

// \s+(?!\S)|\s+ at white space: the whole run at the end of the text, else all but its last character.
const uint8_t* spaces_before_text(const CharClasses& classes, const uint8_t* p, const uint8_t* end, bool newlines_end) {
  const uint8_t* last = p;
  const uint8_t* newline = nullptr;
  const uint8_t* q = p;
  while (q < end) {
    const Look at = look(classes, q, end);
    if (at.cls != kSpace) break;
    last = q;
    if (is_newline(*q)) newline = q;
    q += at.size;
  }
  if (newlines_end && newline) return newline + 1;  // \s*[\r\n]+
  return q == end || last == p ? q : last;
}

const uint8_t* up_to_three_numbers(const CharClasses& classes, const uint8_t* p, const uint8_t* end) {
  for (int i = 0; i < 3 && p < end; ++i) {
    const Look at = look(classes, p, end);
    if (at.cls != kNumber) break;
    p += at.size;
  }
  return p;
}

// The two word alternatives of o200k from `p`, without the optional character in front; nullptr if neither matches.
// Capitals are taken greedily; small letters must follow, so the match gives back capitals until the last one that is
// small too (uncased letters and marks are both); if there is none, the second alternative takes all capitals.
const uint8_t* cased_word(const CharClasses& classes, const uint8_t* p, const uint8_t* end) {
  const uint8_t* after_both = nullptr;
  const uint8_t* q = p;
  while (q < end) {
    const Look at = look(classes, q, end);
    if (!at.in(kCapital)) break;
    q += at.size;
    if (at.in(kSmall)) after_both = q;
  }
  const uint8_t* small_end = run(classes, q, end, kSmall);
  if (small_end != q) return small_end;
  if (after_both) return after_both;
  return q != p ? q : nullptr;
}

}  // namespace

const uint8_t* next_gpt2(const CharClasses& classes, const uint8_t* p, const uint8_t* end) {
  if (const size_t n = contraction(p, end, false)) return p + n;
  const Look first = look(classes, p, end);
  Look at = first;
  const uint8_t* q = p;
  if (*p == ' ' && p + 1 < end) {
    at = look(classes, p + 1, end);
    ++q;
  }
  if (at.in(kLetters)) return run(classes, q, end, kLetters);
  if (at.cls == kNumber) return run(classes, q, end, bit(kNumber));
  if (at.in(kPunctuation)) return run(classes, q, end, kPunctuation);
  return spaces_before_text(classes, p, end, false);
}

const uint8_t* next_cl100k(const CharClasses& classes, const uint8_t* p, const uint8_t* end) {
  if (const size_t n = contraction(p, end, true)) return p + n;
  const Look first = look(classes, p, end);
  if (first.in(kLetters)) return run(classes, p, end, kLetters);
  if (first.cls == kNumber) return up_to_three_numbers(classes, p, end);
  const uint8_t* q = p + first.size;
  if (q < end && !is_newline(*p)) {
    const Look second = look(classes, q, end);
    if (second.in(kLetters)) return run(classes, q, end, kLetters);
    if (*p == ' ' && second.in(kPunctuation)) q = run(classes, q, end, kPunctuation);
  }
  if (first.in(kPunctuation)) q = run(classes, p, end, kPunctuation);
  if (first.in(kPunctuation) || q != p + first.size) {
    while (q < end && is_newline(*q)) ++q;
    return q;
  }
  return spaces_before_text(classes, p, end, true);
}

const uint8_t* next_o200k(const CharClasses& classes, const uint8_t* p, const uint8_t* end) {
  const Look first = look(classes, p, end);
  if (first.cls == kNumber) return up_to_three_numbers(classes, p, end);
  const uint8_t* word = nullptr;
  if (first.in(kLetters)) {
    word = cased_word(classes, p, end);
  } else if (!is_newline(*p)) {
    const uint8_t* q = p + first.size;
    if (q < end) word = cased_word(classes, q, end);
    // A mark may be the character in front or itself a word. Tried in this order: mark in front of small letters, the
    // mark alone, mark in front of capitals only.
    if (first.cls == kMark && (!word || word == run(classes, q, end, bit(kUpper)))) word = q;
  }
  if (word) return word + contraction(word, end, true);
  const uint8_t* q = p;
  if (*p == ' ') ++q;
  const uint8_t* stop = run(classes, q, end, kPunctuation);
  if (stop != q) {
    while (stop < end && (is_newline(*stop) || *stop == '/')) ++stop;
    return stop;
  }
  return spaces_before_text(classes, p, end, true);
}

}  // namespace gestalt::support::bpe
