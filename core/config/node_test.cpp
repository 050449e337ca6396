#include "core/config/node.h"

#include <cmath>

#include "core/config/toml_reader.h"
#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;
using gestalt::test::thrown_by;

TEST_CASE("A path names tables, elements and quoted keys") {
  const auto root =
      read_toml_text("[data]\ncorpora = [{path = 'a'}, {path = 'b'}]\n[kernels]\npin = {'core.x' = 'y'}\n", "t");
  REQUIRE(find_path(root, "data.corpora[1].path"));
  CHECK(find_path(root, "data.corpora[1].path")->as_string() == "b");
  CHECK(find_path(root, "kernels.pin.\"core.x\"")->as_string() == "y");
  CHECK_FALSE(find_path(root, "data.corpora[2].path"));
  CHECK_FALSE(find_path(root, "data.corpora.path"));
  CHECK_FALSE(find_path(root, "data[0]"));
  CHECK_FALSE(find_path(root, "none.at.all"));
}

TEST_CASE("Joined paths are parsed back") {
  const std::string path = join_path(join_index(join_path("a", "b.c"), 3), "d\"e");
  CHECK(path == R"(a."b.c"[3]."d\"e")");
  const auto steps = parse_path(path);
  REQUIRE(steps.size() == 4);
  CHECK(steps[1].key == "b.c");
  CHECK(steps[2].index == 3);
  CHECK(steps[3].key == "d\"e");
}

TEST_CASE("Malformed paths are refused") {
  for (const char* path : {"", ".", "a.", ".a", "a..b", "a[", "a[x]", "a[-1]", "a[0", "[0]", "a b", "a\"b\"", "\"a",
                           "a[0]b", "a[99999999999999999999]", "a[]"}) {
    const auto e = thrown_by([&] { parse_path(path); });
    CHECK(e.code() == GESTALT_CONFIG_ERROR);
    CHECK_THAT(e.message(), Catch::Contains("malformed key"));
  }
}

TEST_CASE("A document written and read again has the same values") {
  const auto root = read_toml_text(R"(
top = 1
empty = []
[a]
text = "q\"uo\\te\n\ttab \u0001 gr\u00fc\u00df"
real = 0.1
small = 1e-300
whole = 2.0
large = 1e22
inf = [inf, -inf]
flags = [true, false]
"odd key" = { "x.y" = [1, [2, { z = 3 }]] }
[a.b.c]
deep = -9223372036854775808
[a.none]
[[list]]
x = 1
[list.sub]
y = 2
[[list]]
[[list.inner]]
z = 3
)",
                                   "t");
  const std::string text = to_toml(root);
  INFO(text);
  CHECK(same_value(root, read_toml_text(text, "again")));
}

TEST_CASE("A number that is no number is written as nan") {
  CHECK(ConfigNode::real(std::nan("")).text() == "nan");
  CHECK(std::isnan(read_toml_value("nan", "t").as_real()));
}

TEST_CASE("Same value tells kinds apart and forgets the order of members") {
  const auto value = [](const char* text) { return read_toml_value(text, "t"); };
  CHECK(same_value(value("{a = 1, b = 2}"), value("{b = 2, a = 1}")));
  CHECK_FALSE(same_value(value("{a = 1}"), value("{a = 1, b = 2}")));
  CHECK_FALSE(same_value(value("1"), value("1.0")));
  CHECK_FALSE(same_value(value("[1]"), value("[1, 2]")));
  CHECK(same_value(value("[1, [2]]"), value("[1, [2]]")));
}

TEST_CASE("Reading a value as another kind is our mistake") {
  CHECK(thrown_by([] { ConfigNode::integer(1).as_string(); }).code() == GESTALT_INTERNAL);
  CHECK(thrown_by([] { ConfigNode::string("a").as_real(); }).code() == GESTALT_INTERNAL);
  CHECK(thrown_by([] { ConfigNode::integer(1).insert("a", {}); }).code() == GESTALT_INTERNAL);
}
