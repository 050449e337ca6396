#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gestalt::core {

// Edits (insert, delete, replace, swap of neighbours) that turn a into b.
size_t edit_distance(std::string_view a, std::string_view b);

// The candidate closest to `name`, or "" when none is within a third of its length (at least one edit).
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

// Matches a module path. `*` is any text inside one dot component, `[0-3]` or `[7]` a whole number in that range, `**`
// any number of components; a last component `*` is everything below. A malformed pattern is a CONFIG_ERROR.
bool glob_match(std::string_view pattern, std::string_view path);

// "a.b" -> {"a", "b"}; "" -> {""}.
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// "1.50 GiB", "12 B".
std::string format_bytes(uint64_t bytes);
// "1.2 ms", "3.4 s", "2 m 05 s", "1 h 02 m".
std::string format_duration(double seconds);

// Control bytes (also U+0080..U+009F) become \xNN, so that foreign text cannot drive a terminal; invalid UTF-8 too.
std::string escape_controls(std::string_view text);

// The text as a quoted JSON string; invalid UTF-8 becomes U+FFFD.
std::string json_quote(std::string_view text);

}  // namespace gestalt::core
