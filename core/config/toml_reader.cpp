#include "core/config/toml_reader.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "support/utf8.h"

// toml++ 3.3 guards itself with assertions that plain text can reach: they abort, or with NDEBUG become assumptions
// that are false. Here they throw in every build. That needs the parser compiled in this file, not in the shared
// library that a build may have chosen. Can go when a toml++ is required whose parser reports such text as an error.
namespace {
struct ParserGaveUp {};
[[noreturn]] inline void parser_gave_up() { throw ParserGaveUp{}; }
}  // namespace
#undef NDEBUG
#undef TOML_SHARED_LIB
#undef TOML_HEADER_ONLY
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ASSERT(expression) ((expression) ? static_cast<void>(0) : parser_gave_up())
#include <toml++/toml.h>

namespace gestalt::core {

namespace {

struct Place {
  uint32_t line = 1, column = 1;
};

[[noreturn]] void fail_at(std::string_view name, Place place, std::string_view problem) {
  fail(GESTALT_CONFIG_ERROR, "{}:{}:{}: {}", escape_controls(name), place.line, place.column, escape_controls(problem));
}

// What toml++ cannot be trusted with is refused before it sees the text. Follows strings and comments exactly as the
// grammar does up to the first syntax error, where toml++ stops too.
class Filter {
 public:
  Filter(std::string_view text, std::string_view name, const TomlLimits& limits)
      : text_(text), name_(name), limits_(limits) {}

  void run() {
    const uint64_t valid = support::valid_utf8_prefix(text_);
    check_bytes(text_.substr(0, valid));
    if (valid < text_.size()) problem(valid, "not valid UTF-8");
    while (pos_ < text_.size()) {
      const char c = text_[pos_];
      if (c == '#')
        skip_comment();
      else if (c == '"' || c == '\'')
        skip_string(c);
      else
        plain(c);
    }
  }

 private:
  [[noreturn]] void problem(size_t pos, std::string_view text) const {
    Place place;
    for (size_t i = 0; i < pos; ++i) {
      const bool newline = text_[i] == '\n';
      place.line += newline;
      place.column = newline ? 1 : place.column + ((static_cast<unsigned char>(text_[i]) & 0xC0) != 0x80);
    }
    fail_at(name_, place, text);
  }

  void check_bytes(std::string_view text) const {
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F)
        problem(i, fmt::format("control byte 0x{:02x}, expected text", byte));
    }
  }

  void skip_comment() { pos_ = std::min(text_.find('\n', pos_), text_.size()); }

  void skip_string(char quote) {
    const std::string_view three = quote == '"' ? "\"\"\"" : "'''";
    const bool multiline = text_.substr(pos_, 3) == three;
    pos_ += multiline ? 3 : 1;
    while (pos_ < text_.size()) {
      const char c = text_[pos_];
      if (c == '\\' && quote == '"') {
        pos_ += 2;
      } else if (multiline ? text_.substr(pos_, 3) == three : c == quote) {
        pos_ += multiline ? 3 : 1;
        // Up to two quotes may stand right before the closing three.
        for (int i = 0; multiline && i < 2 && pos_ < text_.size() && text_[pos_] == quote; ++i) ++pos_;
        return;
      } else if (c == '\n' && !multiline) {
        return;
      } else {
        ++pos_;
      }
    }
    pos_ = text_.size();
  }

  void plain(char c) {
    if (static_cast<unsigned char>(c) >= 0x80)
      problem(pos_, "a letter that is not ASCII outside quotes; quote the key or value");
    if (c == '[' || c == '{') {
      if (++depth_ > limits_.depth)
        problem(pos_, fmt::format("nested too deeply, expected at most {} levels", limits_.depth));
    } else if (c == ']' || c == '}') {
      depth_ = std::max(0, depth_ - 1);
    }
    if (c == '.') {
      if (++dots_ >= limits_.key_parts)
        problem(pos_, fmt::format("a key of too many parts, expected at most {}", limits_.key_parts));
    } else if (std::string_view("\n=,[]{}").find(c) != std::string_view::npos) {
      dots_ = 0;
    }
    ++pos_;
  }

  std::string_view text_, name_;
  const TomlLimits& limits_;
  size_t pos_ = 0;
  int depth_ = 0, dots_ = 0;
};

class Converter {
 public:
  Converter(std::string name, const TomlLimits& limits)
      : name_(std::make_shared<const std::string>(std::move(name))), limits_(limits) {}

  ConfigNode table(const toml::table& from, Place place, int depth) const {
    check_depth(place, depth);
    // toml++ sorts keys; their places give the order of the file back.
    std::vector<std::pair<Place, ConfigMember>> members;
    for (const auto& [key, value] : from) {
      const Place at = place_of(key.source(), place);
      check_text(key.str(), at, "key");
      members.push_back({at, {std::string(key.str()), convert(value, at, depth + 1)}});
    }
    std::stable_sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first.line, a.first.column) < std::pair(b.first.line, b.first.column);
    });
    ConfigNode out = ConfigNode::table();
    for (auto& [at, member] : members) out.members().push_back(std::move(member));
    return placed(std::move(out), place);
  }

 private:
  ConfigNode convert(const toml::node& from, Place place, int depth) const {
    if (const auto* t = from.as_table()) return table(*t, place, depth);
    if (const auto* a = from.as_array()) {
      check_depth(place, depth);
      std::vector<ConfigNode> elements;
      for (const toml::node& e : *a) elements.push_back(convert(e, place_of(e.source(), place), depth + 1));
      return placed(ConfigNode::array(std::move(elements)), place);
    }
    if (const auto* s = from.as_string()) {
      check_text(s->get(), place, "string");
      return placed(ConfigNode::string(s->get()), place);
    }
    if (const auto* i = from.as_integer()) return placed(ConfigNode::integer(i->get()), place);
    if (const auto* f = from.as_floating_point()) return placed(ConfigNode::real(f->get()), place);
    if (const auto* b = from.as_boolean()) return placed(ConfigNode::boolean(b->get()), place);
    fail_at(*name_, place, "a date or time, expected a string, number, boolean, array or table; put it in quotes");
  }

  static Place place_of(const toml::source_region& region, Place fallback) {
    if (region.begin.line == 0) return fallback;
    return {static_cast<uint32_t>(region.begin.line), static_cast<uint32_t>(region.begin.column)};
  }

  void check_depth(Place place, int depth) const {
    if (depth > limits_.depth)
      fail_at(*name_, place, fmt::format("nested too deeply, expected at most {} levels", limits_.depth));
  }

  void check_text(std::string_view text, Place place, const char* what) const {
    if (text.size() > limits_.string_bytes)
      fail_at(*name_, place,
              fmt::format("a {} of {} bytes, expected at most {}", what, text.size(), limits_.string_bytes));
    // A name that C would cut short must not pass a check and then mean another file.
    if (text.find('\0') != std::string_view::npos)
      fail_at(*name_, place, fmt::format("a {} with a zero byte inside", what));
  }

  ConfigNode placed(ConfigNode node, Place place) const {
    node.origin.kind = Origin::Kind::kFile;
    node.origin.name = name_;
    node.origin.line = place.line;
    node.origin.column = place.column;
    return node;
  }

  std::shared_ptr<const std::string> name_;
  const TomlLimits& limits_;
};

}  // namespace

ConfigNode read_toml_text(std::string_view text, std::string name, const TomlLimits& limits) {
  if (text.size() > limits.file_bytes)
    fail(GESTALT_CONFIG_ERROR, "{}: too large, got {} bytes, expected at most {}", escape_controls(name), text.size(),
         limits.file_bytes);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // the mark some editors write
  Filter(text, name, limits).run();
  try {
    const toml::table document = toml::parse(text);
    return Converter(name, limits).table(document, {}, 0);
  } catch (const toml::parse_error& e) {
    const toml::source_position at = e.source().begin;
    fail_at(name, {std::max<uint32_t>(at.line, 1), std::max<uint32_t>(at.column, 1)}, e.description());
  } catch (const ParserGaveUp&) {
    fail(GESTALT_CONFIG_ERROR, "{}: not TOML; the parser cannot tell where", escape_controls(name));
  }
}

ConfigNode read_toml_file(const std::filesystem::path& path, const TomlLimits& limits) {
  std::string text;
  try {
    text = read_file(path, limits.file_bytes);
  } catch (const Error& e) {
    if (e.code() != GESTALT_DATA_ERROR) throw;
    throw Error(GESTALT_CONFIG_ERROR, e.message());
  }
  return read_toml_text(text, path.string(), limits);
}

ConfigNode read_toml_value(std::string_view text, std::string name) {
  ConfigNode document = read_toml_text("value = " + std::string(text), name);
  if (document.members().size() != 1)  // a line break in the text began another key
    fail(GESTALT_CONFIG_ERROR, "{}: more than one value, got '{}'", escape_controls(name), escape_controls(text));
  return std::move(document.members().front().value);
}

}  // namespace gestalt::core
