#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gestalt::support::indexed {

struct ParityCase {
  std::string tag;
  int64_t num_arrays = 0;                // compared
  std::vector<std::string> differences;  // one line each
};

// A folder of data cases: cases.json, <tag>.npz, and the corpora. Every array of every archive is compared, values and
// types; an array that nothing here makes is a difference.
std::vector<ParityCase> compare_data_cases(const std::string& folder);

}  // namespace gestalt::support::indexed
