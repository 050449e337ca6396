#include "core/ops/attrs.h"

#include "core/base/host.h"
#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;

TEST_CASE("attributes cross the ABI and come back the same") {
  const Attrs a{{"b", true},
                {"f", 0.25},
                {"i", int64_t{-3}},
                {"l", std::vector<int64_t>{1, 2}},
                {"m", std::vector<double>{0.5}},
                {"n", std::vector<std::string>{"x", "yz"}},
                {"s", std::string("text")},
                {"z", std::vector<int64_t>{}}};
  const AttrArray array(a);
  REQUIRE(array.size() == 8);
  for (uint64_t i = 1; i < array.size(); ++i) CHECK(view_of(array.data()[i - 1].name) < view_of(array.data()[i].name));
  CHECK(Attrs(array.data(), array.size()) == a);
}

TEST_CASE("an attribute array borrows nothing from the attributes it was made of") {
  auto a = std::make_unique<Attrs>();
  a->set("name", std::string("a text that is too long to be stored inside the string object"));
  const AttrArray array(*a);
  a.reset();
  CHECK(Attrs(array.data(), array.size()).str("name").size() == 61);
}

TEST_CASE("an attribute of unknown kind is refused") {
  gestalt_attr bad{};
  bad.name = str_of("x");
  bad.kind = 99;
  const auto e = gestalt::test::thrown_by([&] { Attrs(&bad, 1); });
  CHECK(e.code() == GESTALT_INVALID_ARGUMENT);
  CHECK_THAT(e.message(), Catch::Contains("[x]") && Catch::Contains("99"));
}

TEST_CASE("reading an attribute as another type is an error of ours") {
  const Attrs a{{"n", int64_t{1}}};
  CHECK(gestalt::test::thrown_by([&] { a.f64("n"); }).code() == GESTALT_INTERNAL);
  CHECK(gestalt::test::thrown_by([&] { a.i64("m"); }).code() == GESTALT_INTERNAL);
  CHECK(a.text() == "n=1");
}
