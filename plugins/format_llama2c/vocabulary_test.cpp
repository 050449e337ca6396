#include "plugins/format_llama2c/vocabulary.h"

#include "tests/catch_compat.hpp"

using namespace gestalt::format_llama2c;

namespace {

// <unk>, <s>, </s>, 256 bytes, then the pieces with falling scores.
Vocabulary vocabulary(const std::vector<std::string>& more) {
  std::vector<std::string> pieces = {"<unk>", "\n<s>\n", "\n</s>\n"};
  std::vector<float> scores(259, 0);
  for (int b = 0; b < 256; ++b) pieces.push_back("<byte" + std::to_string(b) + ">");
  for (const std::string& p : more) {
    scores.push_back(-static_cast<float>(pieces.size() - 259));
    pieces.push_back(p);
  }
  return Vocabulary(pieces, scores);
}

std::vector<int32_t> encode(const Vocabulary& v, std::string_view text) {
  std::vector<int32_t> ids;
  v.encode(text, ids);
  return ids;
}

}  // namespace

TEST_CASE("the pair with the highest score merges first") {
  const Vocabulary v = vocabulary({"bc", "ab", " ", "a", "b", "c"});
  CHECK(encode(v, "abc") == std::vector<int32_t>{261, 262, 259});
}

TEST_CASE("characters that are no token become bytes") {
  const Vocabulary v = vocabulary({" ", "a"});
  CHECK(encode(v, "a\xc3\xa9") == std::vector<int32_t>{259, 260, kFirstByte + 0xc3, kFirstByte + 0xa9});
}

TEST_CASE("an empty text has no tokens") { CHECK(encode(vocabulary({" "}), "").empty()); }

TEST_CASE("byte tokens decode to their byte and the begin token to nothing") {
  const Vocabulary v = vocabulary({" "});
  CHECK(v.bytes(kFirstByte + 0x41) == "A");
  CHECK(v.bytes(kBegin).empty());
}
