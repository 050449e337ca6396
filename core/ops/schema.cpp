#include "core/ops/schema.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "core/base/error.h"

namespace gestalt::core {

namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Schema parse() {
    Schema s;
    s.name = word(true);
    if (s.name.find('.') == std::string::npos) error("an op name is 'namespace.op'");
    expect('(');
    if (!accept(')')) {
      bool attributes = false;
      do {
        if (accept('*')) {
          if (attributes) error("a second '*'");
          attributes = true;
        } else if (attributes) {
          s.attributes.push_back(attribute(s));
        } else {
          s.inputs.push_back(input(s));
          if (s.inputs.size() > 1 && s.inputs[s.inputs.size() - 2].variadic) error("'...' is for the last input only");
        }
      } while (accept(','));
      expect(')');
    }
    expect('-');
    expect('>');
    if (accept('(')) {
      if (!accept(')')) {
        do s.outputs.push_back(output(s));
        while (accept(','));
        expect(')');
      }
    } else {
      s.outputs.push_back(output(s));
    }
    space();
    if (pos_ != text_.size()) error("text after the end");
    return s;
  }

 private:
  [[noreturn]] void error(std::string_view what) {
    fail(GESTALT_INVALID_ARGUMENT, "[schema '{}'] column {}: {}", text_, pos_ + 1, what);
  }
  void space() {
    while (pos_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[pos_]))) ++pos_;
  }
  bool accept(char c) {
    space();
    if (pos_ >= text_.size() || text_[pos_] != c) return false;
    ++pos_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) error(fmt::format("expected '{}'", c));
  }
  bool accept(std::string_view s) {
    space();
    if (text_.substr(pos_, s.size()) != s) return false;
    pos_ += s.size();
    return true;
  }
  std::string word(bool dots = false) {
    space();
    const size_t begin = pos_;
    while (pos_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[pos_])) || text_[pos_] == '_' ||
                                   (dots && text_[pos_] == '.')))
      ++pos_;
    if (pos_ == begin) error("expected a name");
    return std::string(text_.substr(begin, pos_ - begin));
  }

  // Inputs, attributes and outputs each have names of their own: an input and an attribute may be called the same.
  void expect_new(bool taken, std::string_view name) {
    if (taken) error(fmt::format("'{}' is named twice", name));
  }
  template <class List>
  static bool has(const List& list, std::string_view name) {
    return std::any_of(list.begin(), list.end(), [&](const auto& e) { return e.name == name; });
  }

  Schema::Input input(const Schema& s) {
    Schema::Input in;
    in.name = word();
    expect_new(has(s.inputs, in.name), in.name);
    for (;;) {
      if (accept('?'))
        in.optional = true;
      else if (accept("!mut"))
        in.mutated = true;
      else if (accept("..."))
        in.variadic = true;
      else
        return in;
    }
  }

  Schema::Output output(const Schema& s) {
    Schema::Output out;
    out.name = word();
    expect_new(has(s.outputs, out.name), out.name);
    if (accept("...")) out.variadic = true;
    while (accept('!')) {
      const std::string mark = word();
      if (mark == "inplace") {
        expect('(');
        const std::string of = word();
        expect(')');
        auto it = std::find_if(s.inputs.begin(), s.inputs.end(), [&](const auto& i) { return i.name == of; });
        if (it == s.inputs.end()) error(fmt::format("!inplace({}) names no input", of));
        out.inplace = static_cast<size_t>(it - s.inputs.begin());
      } else if (mark == "acc") {
        expect('(');
        if (word() != "f32") error("!acc is for f32");
        expect(')');
        out.accumulates = true;
      } else if (mark == "saved") {
        out.saved = true;
      } else if (mark == "nograd") {
        out.nograd = true;
      } else if (mark == "opaque") {
        out.opaque = true;
      } else if (mark != "view") {
        error(fmt::format("unknown mark '!{}', expected inplace, view, acc, saved, nograd or opaque", mark));
      }
    }
    return out;
  }

  Schema::Attribute attribute(const Schema& s) {
    Schema::Attribute a;
    a.name = word();
    expect_new(has(s.attributes, a.name), a.name);
    expect(':');
    const std::string type = word();
    const bool list = accept("[]");
    if (type == "i64")
      a.kind = list ? GESTALT_ATTR_I64_LIST : GESTALT_ATTR_I64;
    else if (type == "f64")
      a.kind = list ? GESTALT_ATTR_F64_LIST : GESTALT_ATTR_F64;
    else if (type == "str")
      a.kind = list ? GESTALT_ATTR_STR_LIST : GESTALT_ATTR_STR;
    else if (type == "bool" && !list)
      a.kind = GESTALT_ATTR_BOOL;
    else
      error(fmt::format("unknown attribute type '{}', expected i64, f64, str or bool", type));
    if (accept('=')) a.default_value = literal(a.kind);
    return a;
  }

  AttrValue literal(uint64_t kind) {
    space();
    switch (kind) {
      case GESTALT_ATTR_I64: return integer();
      case GESTALT_ATTR_F64: return number();
      case GESTALT_ATTR_BOOL:
        if (accept("true")) return true;
        if (accept("false")) return false;
        error("expected true or false");
      case GESTALT_ATTR_STR: {
        expect('"');
        const size_t begin = pos_;
        while (pos_ < text_.size() && text_[pos_] != '"') ++pos_;
        std::string s(text_.substr(begin, pos_ - begin));
        expect('"');
        return s;
      }
      default: {
        expect('[');
        std::vector<int64_t> ints;
        std::vector<double> floats;
        if (!accept(']')) {
          do {
            space();
            if (kind == GESTALT_ATTR_I64_LIST)
              ints.push_back(integer());
            else if (kind == GESTALT_ATTR_F64_LIST)
              floats.push_back(number());
            else
              error("a default list of strings can only be empty");
          } while (accept(','));
          expect(']');
        }
        if (kind == GESTALT_ATTR_I64_LIST) return ints;
        if (kind == GESTALT_ATTR_F64_LIST) return floats;
        return std::vector<std::string>{};
      }
    }
  }

  int64_t integer() {
    int64_t v = 0;
    auto [end, ec] = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), v);
    if (ec != std::errc{}) error("expected an integer");
    pos_ = static_cast<size_t>(end - text_.data());
    return v;
  }
  double number() {
    double v = 0;
    auto [end, ec] = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), v);
    if (ec != std::errc{}) error("expected a number");
    pos_ = static_cast<size_t>(end - text_.data());
    return v;
  }

  std::string_view text_;
  size_t pos_ = 0;
};

constexpr const char* kKindNames[] = {"?", "i64", "f64", "str", "bool", "i64[]", "f64[]", "str[]"};

}  // namespace

Schema parse_schema(std::string_view text) { return Parser(text).parse(); }

size_t Schema::min_inputs() const {
  size_t n = inputs.size();
  while (n > 0 && (inputs[n - 1].optional || inputs[n - 1].variadic)) --n;
  return n;
}

size_t Schema::max_inputs() const {
  return !inputs.empty() && inputs.back().variadic ? SIZE_MAX : inputs.size();
}

bool Schema::mutates() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const Input& i) { return i.mutated; });
}

Attrs Schema::complete(const Attrs& given) const {
  Attrs out;
  for (const auto& entry : given.values()) {  // clang 14 does not capture structured bindings
    const auto& key = entry.first;
    const auto& value = entry.second;
    auto it = std::find_if(attributes.begin(), attributes.end(), [&](const Attribute& a) { return a.name == key; });
    if (it == attributes.end()) {
      std::string known;
      for (const Attribute& a : attributes) known += (known.empty() ? "" : ", ") + a.name;
      fail(GESTALT_INVALID_ARGUMENT, "[{}] unknown attribute '{}', expected one of: {}", name, key,
           known.empty() ? "none" : known);
    }
    AttrValue v = value;
    if (it->kind == GESTALT_ATTR_F64 && std::holds_alternative<int64_t>(v))
      v = static_cast<double>(std::get<int64_t>(v));
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value); list && it->kind == GESTALT_ATTR_F64_LIST)
      v = std::vector<double>(list->begin(), list->end());
    if (kAttrKinds[v.index()] != it->kind)
      fail(GESTALT_INVALID_ARGUMENT, "[{}] attribute '{}' has type {}, expected {}", name, key,
           kKindNames[kAttrKinds[v.index()]], kKindNames[it->kind]);
    out.set(key, std::move(v));
  }
  for (const Attribute& a : attributes) {
    if (out.find(a.name)) continue;
    if (!a.default_value)
      fail(GESTALT_INVALID_ARGUMENT, "[{}] attribute '{}' is required ({})", name, a.name, kKindNames[a.kind]);
    out.set(a.name, *a.default_value);
  }
  return out;
}

}  // namespace gestalt::core
