#pragma once

#include <string>
#include <string_view>

#include "gestalt/abi/base.h"

namespace gestalt {

constexpr std::string_view view_of(gestalt_str s) { return {s.data, static_cast<size_t>(s.size)}; }
constexpr gestalt_str str_of(std::string_view s) { return {s.data(), s.size()}; }

}  // namespace gestalt
