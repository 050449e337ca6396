#include "core/ops/dims.h"

#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;
using gestalt::test::thrown_by;

TEST_CASE("equal expressions over named dimensions have equal handles") {
  DimTable d;
  const int64_t t = d.named("tokens", 100), s = d.named("sequences", 10);
  CHECK(t < 0);
  CHECK(d.named("tokens", 50) == t);
  CHECK(d.add(t, s) == d.add(s, t));
  CHECK(d.mul(d.add(t, s), 4) == d.add(d.mul(4, t), d.mul(s, 4)));
  CHECK(d.mul(d.add(t, 1), d.add(t, 1)) == d.add(d.add(d.mul(t, t), d.mul(2, t)), 1));
  CHECK(d.add(t, s) != d.mul(t, s));
  CHECK(d.sub(d.add(t, 5), t) == 5);
  CHECK(d.sub(t, t) == 0);
  CHECK(d.mul(t, 0) == 0);
  CHECK(d.mul(3, 4) == 12);
}

TEST_CASE("division answers only where it is exact as an expression") {
  DimTable d;
  const int64_t t = d.named("tokens", 64), s = d.named("sequences", 8);
  CHECK(d.div(12, 4) == 3);
  CHECK(d.div(12, 5) == 0);
  CHECK(d.div(d.mul(t, 12), 4) == d.mul(t, 3));
  CHECK(d.div(d.mul(t, 12), t) == 12);
  CHECK(d.div(d.mul(t, s), s) == t);
  CHECK(d.div(t, 2) == 0);
  CHECK(d.div(t, s) == 0);
  CHECK(d.div(6, t) == 0);
  CHECK(d.div(d.add(d.mul(t, 4), 8), 4) == d.add(t, 2));
  CHECK(d.div(d.add(t, s), d.add(s, t)) == 1);
  CHECK(d.div(5, 0) == 0);
  CHECK(d.div(0, 5) == 0);
}

TEST_CASE("an expression has a maximum, a value and a text") {
  DimTable d;
  const int64_t t = d.named("tokens", 100), s = d.named("sequences", 10);
  const int64_t e = d.add(d.mul(t, 4), s);
  CHECK(d.max(e) == 410);
  d.set("tokens", 7);
  d.set("sequences", 2);
  CHECK(d.value(e) == 30);
  CHECK(d.max(e) == 410);
  CHECK(d.value(12) == 12);
  CHECK(d.text(e) == "tokens*4+sequences");
  CHECK(d.text(d.mul(t, s)) == "tokens*sequences");
  CHECK(d.text(12) == "12");
  CHECK(d.has("tokens"));
  CHECK_FALSE(d.has("heads"));
}

TEST_CASE("the maximum of a difference is a bound for every value") {
  DimTable d;
  const int64_t t = d.named("tokens", 100), s = d.named("sequences", 10);
  const int64_t e = d.sub(t, s);
  d.set("tokens", 100);
  d.set("sequences", 1);
  CHECK(d.value(e) == 99);
  CHECK(d.max(e) >= 99);
  CHECK(d.max(d.sub(t, 1)) == 99);
}

TEST_CASE("a size beyond the planned maximum is refused with the numbers") {
  DimTable d;
  d.named("tokens", 100);
  const auto e = thrown_by([&] { d.set("tokens", 101); });
  CHECK(e.code() == GESTALT_INVALID_ARGUMENT);
  CHECK_THAT(e.message(), Catch::Contains("[tokens]") && Catch::Contains("101") && Catch::Contains("0 to 100"));
  d.set("nobody", 5);  // a name the program does not use
}

TEST_CASE("sizes that overflow 64 bits are errors, not small numbers") {
  DimTable d;
  const int64_t big = int64_t{1} << 62, t = d.named("tokens", 100);
  CHECK(thrown_by([&] { d.mul(big, 4); }).code() == GESTALT_INVALID_ARGUMENT);
  CHECK(thrown_by([&] { d.add(big, big); }).code() == GESTALT_INVALID_ARGUMENT);
  CHECK(thrown_by([&] { d.mul(d.mul(t, big), 4); }).code() == GESTALT_INVALID_ARGUMENT);
  CHECK(thrown_by([&] { d.max(d.mul(t, big)); }).code() == GESTALT_INVALID_ARGUMENT);
  const gestalt_dims* abi = d.abi();
  CHECK(abi->mul(abi->self, big, 4) == 0);
}

TEST_CASE("a negative number that is no handle is an error that says so") {
  DimTable d;
  const auto e = thrown_by([&] { d.mul(-1, 2); });
  CHECK(e.code() == GESTALT_INVALID_ARGUMENT);
  CHECK_THAT(e.message(), Catch::Contains("-1") && Catch::Contains("named dimension"));
  CHECK(thrown_by([&] { d.text(-7); }).code() == GESTALT_INVALID_ARGUMENT);
  CHECK(thrown_by([&] { d.max(INT64_MIN); }).code() == GESTALT_INVALID_ARGUMENT);
}

TEST_CASE("the C table computes with the same handles") {
  DimTable d;
  const int64_t t = d.named("tokens", 100);
  const gestalt_dims* abi = d.abi();
  CHECK(abi->mul(abi->self, t, 3) == d.mul(t, 3));
  CHECK(abi->add(abi->self, t, 3) == d.add(t, 3));
  CHECK(abi->div(abi->self, d.mul(t, 3), t) == 3);
  CHECK(abi->max(abi->self, t) == 100);
}
