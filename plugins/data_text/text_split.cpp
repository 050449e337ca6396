#include "plugins/data_text/text_split.h"

namespace gestalt::data_text {

TextSplit split_lines(std::string_view text, const HoldOut& rule) {
  TextSplit split;
  split.train.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const size_t newline = text.find('\n', pos);
    const size_t end = newline == std::string_view::npos ? text.size() : newline + 1;
    const bool held_out = rule.block > 0 && split.num_lines / rule.block % rule.period == rule.index;
    (held_out ? split.valid : split.train).append(text.substr(pos, end - pos));
    split.num_valid_lines += held_out;
    ++split.num_lines;
    pos = end;
  }
  return split;
}

}  // namespace gestalt::data_text
