#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plugins/report/run_data.h"
#include "support/json.h"

namespace gestalt::report {

// What two runs have in common and what not.
struct Difference {
  struct Value {
    std::string name, a, b;  // empty: not there
  };
  std::vector<Value> settings, plugins, kernels;
  std::vector<Value> last;          // last values of metrics that both or one have
  std::optional<int64_t> first_step;  // at which the losses differ; none: they are equal where both have one
  int64_t common_steps = 0;           // with a loss in both
};

Difference difference_of(const RunData& a, const RunData& b);
std::string text_of(const Difference& d, const RunData& a, const RunData& b);
support::Json json_of(const Difference& d);

}  // namespace gestalt::report
