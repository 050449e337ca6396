#include "core/ops/schema.h"

#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;
using Catch::Contains;
using gestalt::test::message_of;
using gestalt::test::thrown_by;

TEST_CASE("a schema gives names, marks and defaults") {
  const Schema s = parse_schema(
      "acme.op(x, w?, state!mut, master?!mut, *, eps: f64 = 1e-5, dim: i64 = -1, on: bool = true, mode: str = \"a b\", "
      "dims: i64[] = [1, 2], scale: f64[] = [0.5]) -> (y!inplace(x)!acc(f32), aux!saved!nograd, raw!opaque)");
  CHECK(s.name == "acme.op");
  REQUIRE(s.inputs.size() == 4);
  CHECK_FALSE(s.inputs[0].optional);
  CHECK(s.inputs[1].optional);
  CHECK(s.inputs[2].mutated);
  CHECK((s.inputs[3].optional && s.inputs[3].mutated));
  CHECK(s.min_inputs() == 3);
  CHECK(s.max_inputs() == 4);
  CHECK(s.mutates());
  REQUIRE(s.outputs.size() == 3);
  CHECK(s.outputs[0].inplace == size_t{0});
  CHECK(s.outputs[0].accumulates);
  CHECK((s.outputs[1].saved && s.outputs[1].nograd));
  CHECK(s.outputs[2].opaque);
  const Attrs a = s.complete({});
  CHECK(a.f64("eps") == 1e-5);
  CHECK(a.i64("dim") == -1);
  CHECK(a.boolean("on"));
  CHECK(a.str("mode") == "a b");
  CHECK(a.i64_list("dims") == std::vector<int64_t>{1, 2});
}

TEST_CASE("inputs may be variadic and outputs absent") {
  const Schema s = parse_schema("acme.join(x..., *, dim: i64) -> ()");
  CHECK(s.min_inputs() == 0);
  CHECK(s.max_inputs() == SIZE_MAX);
  CHECK(s.outputs.empty());
  CHECK(s.input(17).name == "x");
  CHECK(parse_schema("acme.make(*, n: i64) -> y").outputs.at(0).name == "y");
  CHECK(parse_schema("acme.none() -> ()").inputs.empty());
}

TEST_CASE("a schema error tells the column and what was expected") {
  struct {
    const char *text, *column, *says;
  } const cases[] = {{"add(a) -> (y)", "column 4:", "namespace.op"},
                     {"acme.add a) -> (y)", "column 10:", "expected '('"},
                     {"acme.add(a -> (y)", "column 12:", "expected ')'"},
                     {"acme.add(a) > (y)", "column 13:", "expected '-'"},
                     {"acme.add(a) -> (y) z", "column 20:", "text after the end"},
                     {"acme.add(a..., b) -> (y)", "column 17:", "last input only"},
                     {"acme.add(a, *, *, n: i64) -> (y)", "column 17:", "second '*'"},
                     {"acme.add(a, *, n: int) -> (y)", "column 22:", "unknown attribute type 'int'"},
                     {"acme.add(a, *, n: bool[]) -> (y)", "column 25:", "unknown attribute type 'bool'"},
                     {"acme.add(a, *, n: i64 = x) -> (y)", "column 25:", "expected an integer"},
                     {"acme.add(a, *, n: f64 = x) -> (y)", "column 25:", "expected a number"},
                     {"acme.add(a, *, n: bool = maybe) -> (y)", "column 26:", "expected true or false"},
                     {"acme.add(a, *, n: str = x) -> (y)", "column 25:", "expected '\"'"},
                     {"acme.add(a) -> (y!inplace(b))", "column 29:", "!inplace(b) names no input"},
                     {"acme.add(a) -> (y!acc(f64))", "column 26:", "!acc is for f32"},
                     {"acme.add(a) -> (y!fast)", "column 23:", "unknown mark '!fast'"},
                     {"acme.add(a, a) -> (y)", "column 14:", "'a' is named twice"},
                     {"acme.add(a, *, a: i64, a: str) -> (y)", "column 25:", "'a' is named twice"},
                     {"acme.add(a) -> (y, y)", "column 21:", "'y' is named twice"},
                     {"", "column 1:", "expected a name"}};
  for (const auto& c : cases) {
    const auto e = thrown_by([&] { parse_schema(c.text); });
    INFO(e.message());
    CHECK(e.code() == GESTALT_INVALID_ARGUMENT);
    CHECK_THAT(e.message(), Contains(c.column) && Contains(c.says) && Contains(c.text));
  }
}

TEST_CASE("attributes are checked by name and type, and completed") {
  const Schema s = parse_schema("acme.op(x, *, eps: f64, n: i64 = 3, list: f64[] = []) -> (y)");
  const Attrs a = s.complete({{"eps", int64_t{2}}});
  CHECK(a.f64("eps") == 2.0);
  CHECK(a.i64("n") == 3);
  CHECK_THAT(message_of([&] { s.complete({{"eps", 1.0}, {"epsilon", 1.0}}); }),
             Contains("[acme.op]") && Contains("unknown attribute 'epsilon'") && Contains("eps, n, list"));
  CHECK_THAT(message_of([&] { s.complete({}); }), Contains("'eps' is required (f64)"));
  CHECK_THAT(message_of([&] { s.complete({{"eps", std::string("1")}}); }), Contains("has type str, expected f64"));
  CHECK_THAT(message_of([&] { s.complete({{"eps", 1.0}, {"n", 1.5}}); }), Contains("has type f64, expected i64"));
  const Attrs listed = s.complete({{"eps", 1.0}, {"list", std::vector<int64_t>{1, 2}}});
  CHECK(std::get<std::vector<double>>(*listed.find("list")) == std::vector<double>{1, 2});
  CHECK_THAT(message_of([] { parse_schema("acme.none() -> ()").complete({{"x", 1.0}}); }), Contains("one of: none"));
}
