#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "gestalt/abi/base.h"

namespace gestalt::core {

// The one exception of the host. code is a GESTALT_ status code; the message carries place, value and hint.
class Error : public std::exception {
 public:
  Error(int32_t code, std::string message) : code_(code), message_(std::move(message)) {}
  int32_t code() const { return code_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  int32_t code_;
  std::string message_;
};

template <class... Args>
[[noreturn]] void fail(int32_t code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

// The launcher's exit code for a status code (docs/guide.md lists them).
int exit_code(int32_t status_code);

// "invalid_argument", "config_error", ...
const char* status_name(int32_t status_code);

}  // namespace gestalt::core
