#include "support/generation/text_stream.h"

#include "tests/catch_compat.hpp"

namespace gestalt::support {

TEST_CASE("characters that are spread over tokens come out whole") {
  TextStream s({});
  CHECK(s.push("a\xF0\x9F") == "a");
  CHECK(s.push("\x99\x82") == "\xF0\x9F\x99\x82");
  CHECK(s.push("\xC4") == "");
  CHECK(s.finish() == "\xEF\xBF\xBD");
}

TEST_CASE("a stop string ends the text before itself, also over several tokens") {
  TextStream s({"END", "\n\n"});
  CHECK(s.push("the E") == "the ");
  CHECK(s.push("N") == "");
  CHECK(s.push("emy EN") == "ENemy ");
  CHECK(s.push("D and more") == "");
  CHECK(s.stopped());
  CHECK(s.push("x") == "");
  CHECK(s.finish() == "");
  CHECK(s.text() == "the ENemy ");
}

TEST_CASE("what only looked like a stop string is given out at the end") {
  TextStream s({"END"});
  CHECK(s.push("EN") == "");
  CHECK(s.finish() == "EN");
  CHECK(!s.stopped());
}

}  // namespace gestalt::support
