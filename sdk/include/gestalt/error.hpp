// Errors inside a plugin are exceptions; across the border they are statuses. This file is the one place of
// translation.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "gestalt/str.hpp"

namespace gestalt {

// code is a GESTALT_ status code. Message: "[op or key] problem, got value, expected range; hint".
struct Error : std::exception {
  Error(int32_t code, std::string message) : code(code), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& message() const { return message_; }

  int32_t code;

 private:
  std::string message_;
};

// A kernel declines; the host tries the next candidate and shows the reason.
struct Unsupported : Error {
  explicit Unsupported(std::string reason) : Error(GESTALT_UNSUPPORTED, std::move(reason)) {}
};

struct InvalidArgument : Error {
  explicit InvalidArgument(std::string message) : Error(GESTALT_INVALID_ARGUMENT, std::move(message)) {}
};

// The status for the exception being handled.
inline gestalt_status* status_of_current_exception(const gestalt_host* host) noexcept {
  try {
    throw;
  } catch (const Error& e) {
    return host->status_new(host->self, e.code, str_of(e.message()));
  } catch (const std::bad_alloc&) {
    return host->status_new(host->self, GESTALT_OUT_OF_MEMORY, str_of("out of host memory"));
  } catch (const std::exception& e) {
    return host->status_new(host->self, GESTALT_INTERNAL, str_of(e.what()));
  } catch (...) {
    return host->status_new(host->self, GESTALT_INTERNAL, str_of("exception of an unknown type"));
  }
}

// Runs f and turns what it throws into a status. Every function that the host calls goes through here.
template <class F>
gestalt_status* guard(const gestalt_host* host, F&& f) noexcept {
  try {
    f();
    return nullptr;
  } catch (...) {
    return status_of_current_exception(host);
  }
}

// Throws what a function of the host reported, and frees the status.
inline void check(const gestalt_host* host, gestalt_status* status) {
  if (!status) return;
  gestalt_str message{};
  const int32_t code = host->status_get(host->self, status, &message);
  std::string text(view_of(message));
  host->status_free(host->self, status);
  throw Error(code, std::move(text));
}

}  // namespace gestalt
