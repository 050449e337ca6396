#include "support/flags.h"

#include "gestalt/error.hpp"
#include "tests/catch_compat.hpp"

namespace gestalt::support {
namespace {

Flags parse(std::initializer_list<std::string_view> arguments) {
  std::vector<gestalt_str> list;
  for (const std::string_view a : arguments) list.push_back(str_of(a));
  return Flags(list, {"input", "size"}, {"json"});
}

}  // namespace

TEST_CASE("flags take values in both spellings, switches, and words") {
  const Flags flags = parse({"inspect", "--input", "a", "--input=b", "--json", "--size=7", "--", "--word"});
  CHECK(flags.words() == std::vector<std::string>{"inspect", "--word"});
  CHECK(flags.all("input") == std::vector<std::string>{"a", "b"});
  CHECK(flags.str("input") == "b");
  CHECK(flags.has("json"));
  CHECK(flags.i64("size", 1) == 7);
  CHECK(parse({}).i64("size", 1) == 1);
}

TEST_CASE("flags refuse what is unknown, missing or no number") {
  CHECK_THROWS_AS(parse({"--inptu", "a"}), Error);
  CHECK_THROWS_AS(parse({"--input"}), Error);
  CHECK_THROWS_AS(parse({"--json=1"}), Error);
  CHECK_THROWS_AS(parse({}).str("input"), Error);
  CHECK_THROWS_AS(parse({"--size", "7x"}).i64("size", 0), Error);
}

}  // namespace gestalt::support
