#include "plugins/data_text/text_split.h"

#include "tests/catch_compat.hpp"

namespace gestalt::data_text {

TEST_CASE("line i is held out when i div block mod period is the index") {
  std::string text, train, valid;
  for (int i = 0; i < 2000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    text += line;
    ((i / 31) % 20 == 7 ? valid : train) += line;
  }
  const TextSplit split = split_lines(text, {31, 20, 7});
  CHECK(split.train == train);
  CHECK(split.valid == valid);
  CHECK(split.num_lines == 2000);
  CHECK(split.num_valid_lines == 93);
}

TEST_CASE("empty lines count, a last line needs no newline, and carriage returns stay") {
  const TextSplit split = split_lines("a\r\n\nb", {1, 3, 2});
  CHECK(split.train == "a\r\n\n");
  CHECK(split.valid == "b");
  CHECK(split_lines("", {1, 2, 0}).num_lines == 0);
}

TEST_CASE("without a rule everything is for training") { CHECK(split_lines("a\nb\n", {}).train == "a\nb\n"); }

}  // namespace gestalt::data_text
