#include "core/base/text.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "core/base/error.h"
#include "support/utf8.h"

namespace gestalt::core {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Length of the well-formed UTF-8 character at `pos`, 0 if there is none.
size_t utf8_length(std::string_view text, size_t pos) {
  const support::CodePoint c = support::next_code_point(text, pos);
  return c.valid ? c.size : 0;
}

struct Range {
  uint64_t first, last;
  size_t size;  // characters of the pattern, brackets included
};

[[noreturn]] void bad_pattern(std::string_view pattern, std::string_view problem) {
  fail(GESTALT_CONFIG_ERROR, "[{}] malformed path pattern: {}; use names, *, ** and [first-last]",
       escape_controls(pattern), problem);
}

// Reads "[a-b]" or "[a]" at the start of `text`.
Range read_range(std::string_view text, std::string_view pattern) {
  const size_t close = text.find(']');
  if (close == std::string_view::npos) bad_pattern(pattern, "'[' without ']'");
  const std::string_view body = text.substr(1, close - 1);
  const char* end = body.data() + body.size();
  Range r{0, 0, close + 1};
  auto [p, error] = std::from_chars(body.data(), end, r.first);
  if (error != std::errc()) bad_pattern(pattern, "'[' must be followed by a number");
  r.last = r.first;
  if (p != end) {
    if (*p != '-') bad_pattern(pattern, "expected '-' between two numbers");
    auto [q, error2] = std::from_chars(p + 1, end, r.last);
    if (error2 != std::errc() || q != end) bad_pattern(pattern, "expected '[first-last]'");
  }
  if (r.last < r.first) bad_pattern(pattern, "the range ends before it begins");
  return r;
}

// One dot component. A star is retried from the next position when the rest does not match; the last star is enough.
bool match_component(std::string_view pattern, std::string_view text, std::string_view whole) {
  size_t p = 0, t = 0, star = std::string_view::npos, star_text = 0;
  while (true) {
    bool advanced = false;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
      continue;
    }
    if (p == pattern.size() && t == text.size()) return true;
    if (p < pattern.size() && pattern[p] == '[') {
      const Range r = read_range(pattern.substr(p), whole);
      size_t end = t;
      while (end < text.size() && is_digit(text[end])) ++end;
      uint64_t value = 0;
      const bool number = end > t && (t == 0 || !is_digit(text[t - 1])) &&
                          std::from_chars(text.data() + t, text.data() + end, value).ec == std::errc();
      if (number && value >= r.first && value <= r.last) {
        p += r.size;
        t = end;
        advanced = true;
      }
    } else if (p < pattern.size() && t < text.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
      advanced = true;
    }
    if (advanced) continue;
    if (star == std::string_view::npos || star_text >= text.size()) return false;
    p = star + 1;
    t = ++star_text;
  }
}

void check_pattern(const std::vector<std::string>& components, std::string_view pattern) {
  for (const std::string& c : components) {
    if (c.empty()) bad_pattern(pattern, "empty component");
    for (size_t i = 0; i < c.size();) {
      if (c[i] == ']') bad_pattern(pattern, "']' without '['");
      i += c[i] == '[' ? read_range(std::string_view(c).substr(i), pattern).size : 1;
    }
  }
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, row);
  }
  return previous[b.size()];
}

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  if (name.size() > 256) return "";  // the cost is quadratic and no real name is this long
  size_t best = std::max<size_t>(1, (name.size() + 1) / 3) + 1;
  std::string found;
  for (const std::string& c : candidates) {
    const size_t shorter = std::min(name.size(), c.size()), longer = std::max(name.size(), c.size());
    if (longer - shorter >= best) continue;
    const size_t distance = edit_distance(name, c);
    if (distance < best) {
      best = distance;
      found = c;
    }
  }
  return found;
}

bool glob_match(std::string_view pattern, std::string_view path) {
  const std::vector<std::string> want = split(pattern, '.'), have = split(path, '.');
  check_pattern(want, pattern);
  // reach[j]: the pattern read so far matches the first j components of the path.
  std::vector<char> reach(have.size() + 1, 0), next(have.size() + 1);
  reach[0] = 1;
  for (size_t i = 0; i < want.size(); ++i) {
    std::fill(next.begin(), next.end(), 0);
    const bool any_depth = want[i] == "**", below = i + 1 == want.size() && want[i] == "*";
    for (size_t j = 0; j <= have.size(); ++j) {
      if (any_depth)
        next[j] = reach[j] || (j > 0 && next[j - 1]);
      else if (j > 0 && below)
        next[j] = reach[j - 1] || next[j - 1];
      else if (j > 0)
        next[j] = reach[j - 1] && match_component(want[i], have[j - 1], pattern);
    }
    std::swap(reach, next);
  }
  return reach[have.size()] != 0;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string_view::npos; begin = end + 1)
    parts.emplace_back(text.substr(begin, end - begin));
  parts.emplace_back(text.substr(begin));
  return parts;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string format_bytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return fmt::format("{:.2f} {}", value, kUnits[unit]);
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0)) return fmt::format("{} s", seconds);
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  if (seconds > 1e15) return fmt::format("{} s", seconds);
  const int64_t s = static_cast<int64_t>(seconds);
  if (s < 3600) return fmt::format("{} m {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} m", s / 3600, s % 3600 / 60);
}

std::string escape_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t n = utf8_length(text, i);
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const bool c1 = n == 2 && c == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (n == 0 || c1 || c < 0x20 || c == 0x7F) {
      for (size_t k = 0; k < std::max<size_t>(n, 1); ++k)
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i + k]));
    } else {
      out += text.substr(i, n);
    }
    i += std::max<size_t>(n, 1);
  }
  return out;
}

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const size_t n = utf8_length(text, i);
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (n == 0)
      out += "\xEF\xBF\xBD";
    else if (c == '"' || c == '\\')
      (out += '\\') += static_cast<char>(c);
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c < 0x20 || c == 0x7F)
      out += fmt::format("\\u{:04x}", c);
    else
      out += text.substr(i, n);
    i += std::max<size_t>(n, 1);
  }
  return out += '"';
}

}  // namespace gestalt::core
