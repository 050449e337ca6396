#include "core/config/attr_list.h"

#include "core/base/host.h"
#include "core/config/toml_reader.h"
#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;

namespace {

std::vector<std::string> names(const AttrList& list) {
  std::vector<std::string> out;
  for (uint64_t i = 0; i < list.size(); ++i) out.emplace_back(view_of(list.data()[i].name));
  return out;
}

}  // namespace

TEST_CASE("Attributes are sorted by name whatever the order of adding") {
  AttrList list;
  list.add("lr", 0.5);
  list.add("beta", int64_t{3});
  list.add("zeta", true);
  list.add("alpha", "text");
  CHECK(names(list) == std::vector<std::string>{"alpha", "beta", "lr", "zeta"});
  CHECK(list.find("beta")->value.i == 3);
  CHECK(list.find("lr")->value.f == 0.5);
  CHECK(list.find("zeta")->kind == GESTALT_ATTR_BOOL);
  CHECK(view_of(list.find("alpha")->value.s) == "text");
  CHECK_FALSE(list.find("none"));
}

TEST_CASE("Short texts stay where they are when the list grows and moves") {
  AttrList list;
  for (int i = 99; i >= 0; --i) list.add(fmt::format("k{:02}", i), fmt::format("v{}", i));
  const AttrList moved = std::move(list);
  for (uint64_t i = 0; i < moved.size(); ++i) {
    CHECK(view_of(moved.data()[i].name) == fmt::format("k{:02}", i));
    CHECK(view_of(moved.data()[i].value.s) == fmt::format("v{}", i));
  }
}

TEST_CASE("A name given twice is our mistake") {
  AttrList list;
  list.add("a", 1);
  CHECK(gestalt::test::thrown_by([&] { list.add("a", 2); }).code() == GESTALT_INTERNAL);
}

TEST_CASE("A table becomes attributes by path") {
  const auto table = read_toml_text(R"(
type = "acme.data"
split = { train = 0.9, "odd.key" = 1 }
ids = [1, 2]
mixed = [1, 2.5]
flags = [true, false]
words = ["a", "bc"]
none = []
pair = [1, "x"]
grid = [[1], [2]]
[[corpora]]
path = "a"
[[corpora]]
path = "b"
)",
                                    "t");
  const AttrList list = to_attrs(table);
  CHECK(names(list) == std::vector<std::string>{"corpora[0].path", "corpora[1].path", "flags", "grid[0]", "grid[1]",
                                                "ids", "mixed", "none", "pair[0]", "pair[1]", "split.\"odd.key\"",
                                                "split.train", "type", "words"});
  CHECK(view_of(list.find("corpora[1].path")->value.s) == "b");
  const auto* ids = list.find("ids");
  REQUIRE(ids->kind == GESTALT_ATTR_I64_LIST);
  REQUIRE(ids->value.list.size == 2);
  CHECK(static_cast<const int64_t*>(ids->value.list.data)[1] == 2);
  const auto* mixed = list.find("mixed");
  REQUIRE(mixed->kind == GESTALT_ATTR_F64_LIST);
  CHECK(static_cast<const double*>(mixed->value.list.data)[1] == 2.5);
  REQUIRE(list.find("flags")->kind == GESTALT_ATTR_I64_LIST);
  CHECK(static_cast<const int64_t*>(list.find("flags")->value.list.data)[0] == 1);
  REQUIRE(list.find("words")->kind == GESTALT_ATTR_STR_LIST);
  CHECK(view_of(static_cast<const gestalt_str*>(list.find("words")->value.list.data)[1]) == "bc");
  CHECK(list.find("none")->kind == GESTALT_ATTR_STR_LIST);
  CHECK(list.find("none")->value.list.size == 0);
}
