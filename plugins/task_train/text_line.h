#pragma once

#include <cstdio>
#include <string>

namespace gestalt::train {

// printf into a string.
template <class... A>
std::string text(const char* format, A... args) {
  char line[1024];
  const int n = std::snprintf(line, sizeof line, format, args...);
  return {line, static_cast<size_t>(n < 0 ? 0 : n < static_cast<int>(sizeof line) ? n : sizeof line - 1)};
}

}  // namespace gestalt::train
