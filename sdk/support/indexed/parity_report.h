#pragma once

#include <cstdint>
#include <string>

#include "support/json.h"

namespace gestalt::support::indexed {

// What data_indexed makes of a folder of reference cases, compared array by array.
struct ParityReport {
  support::Json json;  // {"cases": [{"case", "arrays", "differences"}]}
  std::string text;
  uint64_t num_different = 0;
};
ParityReport compare_cases(const std::string& folder);

}  // namespace gestalt::support::indexed
