// Patterns of the tables: one '*' in a name.
#pragma once

#include <string>
#include <string_view>

namespace gestalt::format_hf {

// What stands for the '*' of a pattern, if the name is of this form; without a '*' both are equal.
inline bool match_star(std::string_view pattern, std::string_view name, std::string_view* star) {
  const size_t at = pattern.find('*');
  *star = {};
  if (at == std::string_view::npos) return pattern == name;
  const std::string_view before = pattern.substr(0, at), after = pattern.substr(at + 1);
  if (name.size() < before.size() + after.size() || name.substr(0, before.size()) != before ||
      name.substr(name.size() - after.size()) != after)
    return false;
  *star = name.substr(before.size(), name.size() - before.size() - after.size());
  return true;
}

inline bool match_any(std::string_view pattern, std::string_view name) {
  std::string_view star;
  return match_star(pattern, name, &star);
}

// The '*' must be a number.
inline bool match_layer(std::string_view pattern, std::string_view name, std::string* layer) {
  std::string_view star;
  if (!match_star(pattern, name, &star)) return false;
  if (star.find_first_not_of("0123456789") != std::string_view::npos) return false;
  *layer = star;
  return true;
}

inline std::string with_layer(std::string_view pattern, const std::string& layer) {
  std::string name(pattern);
  if (const size_t at = name.find('*'); at != std::string::npos) name.replace(at, 1, layer);
  return name;
}

}  // namespace gestalt::format_hf
