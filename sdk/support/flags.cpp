#include "support/flags.h"

#include <algorithm>
#include <charconv>

#include "gestalt/error.hpp"

namespace gestalt::support {

Flags::Flags(std::span<const gestalt_str> arguments, std::initializer_list<std::string_view> valued,
             std::initializer_list<std::string_view> switches) {
  const auto in = [](std::initializer_list<std::string_view> list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view a = view_of(arguments[i]);
    if (a == "--") {
      for (++i; i < arguments.size(); ++i) words_.emplace_back(view_of(arguments[i]));
      break;
    }
    if (!a.starts_with("--")) {
      words_.emplace_back(a);
      continue;
    }
    const size_t equals = a.find('=');
    const std::string_view name = a.substr(2, equals == std::string_view::npos ? equals : equals - 2);
    if (in(valued, name)) {
      if (equals == std::string_view::npos && i + 1 == arguments.size())
        throw InvalidArgument("[--" + std::string(name) + "] needs a value");
      values_.push_back({std::string(name), std::string(equals == std::string_view::npos ? view_of(arguments[++i])
                                                                                         : a.substr(equals + 1))});
    } else if (in(switches, name) && equals == std::string_view::npos) {
      values_.push_back({std::string(name), {}});
    } else {
      std::string known;
      for (const auto* list : {&valued, &switches})
        for (const std::string_view k : *list) known += (known.empty() ? "--" : ", --") + std::string(k);
      throw InvalidArgument("[arguments] got " + std::string(a) + ", expected one of " + known);
    }
  }
}

bool Flags::has(std::string_view name) const {
  return std::any_of(values_.begin(), values_.end(), [&](const Value& v) { return v.name == name; });
}

std::string Flags::str(std::string_view name) const {
  if (!has(name)) throw InvalidArgument("[--" + std::string(name) + "] is needed");
  return str(name, {});
}

std::string Flags::str(std::string_view name, std::string_view otherwise) const {
  for (auto v = values_.rbegin(); v != values_.rend(); ++v)
    if (v->name == name) return v->value;
  return std::string(otherwise);
}

int64_t Flags::i64(std::string_view name, int64_t otherwise) const {
  if (!has(name)) return otherwise;
  const std::string text = str(name);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    throw InvalidArgument("[--" + std::string(name) + "] got \"" + text + "\", expected a whole number");
  return value;
}

std::vector<std::string> Flags::all(std::string_view name) const {
  std::vector<std::string> out;
  for (const Value& v : values_)
    if (v.name == name) out.push_back(v.value);
  return out;
}

}  // namespace gestalt::support
