#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gestalt::data_text {

// Line i (from 0) is held out when (i div block) mod period = index. block 0: nothing is.
struct HoldOut {
  int64_t block = 0, period = 1, index = 0;
};

struct TextSplit {
  std::string train, valid;
  int64_t num_lines = 0, num_valid_lines = 0;
};

// Lines keep their newline and the order of the file; a last line without one is a line.
TextSplit split_lines(std::string_view text, const HoldOut& rule);

}  // namespace gestalt::data_text
