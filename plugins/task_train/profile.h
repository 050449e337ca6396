// `--profile A:B`: updates A to B run node by node, and what each op took becomes a Chrome trace and a table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gestalt/plugin.hpp"

namespace gestalt::train {

class Profile {
 public:
  // "A:B", updates counted from 1, both included. Throws USAGE_ERROR.
  explicit Profile(std::string_view range);

  bool covers(int64_t step) const { return step >= first_ && step <= last_; }
  bool ends_with(int64_t step) const { return step == last_; }
  void add(const gestalt_profile_event& event);

  // The trace in the JSON form that chrome://tracing and Perfetto read.
  std::string trace() const;
  // Time by op class and by op, largest first.
  std::string table() const;
  std::string file_name() const;
  bool empty() const { return events_.empty(); }

 private:
  struct Event {
    std::string op, group, path, region, backend;
    int64_t begin_ns, duration_ns;
    double flops, bytes;
  };
  int64_t first_ = 0, last_ = 0;
  std::vector<Event> events_;
};

}  // namespace gestalt::train
