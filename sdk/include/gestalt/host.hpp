#pragma once

#include "gestalt/error.hpp"

namespace gestalt {

// What the host offers to a plugin.
class Host {
 public:
  explicit Host(const gestalt_host* host) : host_(host) {}

  void debug(std::string_view text) const { log(GESTALT_LOG_DEBUG, text); }
  void info(std::string_view text) const { log(GESTALT_LOG_INFO, text); }
  void warn(std::string_view text) const { log(GESTALT_LOG_WARN, text); }
  void error(std::string_view text) const { log(GESTALT_LOG_ERROR, text); }

  // A table of functions by id, as in interface<gestalt_parallel_1>("gestalt.parallel/1"); NULL if absent.
  template <class T>
  const T* interface(std::string_view id) const {
    return static_cast<const T*>(host_->get_interface(host_->self, str_of(id)));
  }
  const gestalt_host* raw() const { return host_; }

 private:
  void log(int32_t level, std::string_view text) const { host_->log(host_->self, level, str_of(text)); }

  const gestalt_host* host_;
};

}  // namespace gestalt
