#pragma once

#include <string>
#include <string_view>

#include "plugins/task_parity/comparison.h"

namespace gestalt::task_parity {

// Named numbers that must stay below their tolerance, as a table and as JSON.
class Checks {
 public:
  // NaN is out of tolerance.
  void add(std::string_view name, double value, double tolerance, const std::string& detail = {});
  Outcome outcome() const;

 private:
  support::Json list_ = support::Json::array();
  std::string text_, failed_;
};

}  // namespace gestalt::task_parity
