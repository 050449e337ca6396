#include "tests/program/recording.h"
#include "tests/catch_compat.hpp"

using namespace gestalt::core;
using namespace gestalt::core::test;

TEST_CASE("nodes whose results nobody reads are removed, whole chains of them") {
  Recording r;
  Value* x = r.input("x", {3});
  Value* y = r.op("core.relu", {x});
  r.op("core.neg", {r.op("core.transpose", {r.op("core.reshape", {r.op("core.relu", {y})}, {{"shape", std::vector<int64_t>{3, 1}}})},
                         {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}})});
  r.program->outputs["y"] = y;
  remove_dead_nodes(*r.program);
  REQUIRE(r.program->nodes.size() == 1);
  CHECK(r.program->nodes[0]->out[0] == y);
}

TEST_CASE("an output that is a view keeps what it shows alive") {
  Recording r;
  Value* y = r.op("core.relu", {r.input("x", {6})});
  r.program->outputs["y"] = r.op("core.reshape", {y}, {{"shape", std::vector<int64_t>{2, 3}}});
  remove_dead_nodes(*r.program);
  CHECK(r.program->nodes.size() == 2);
  r.compile();
  r.set("batch:x", {-1, 2, -3, 4, 5, 6});
  r.run();
  CHECK(r.get("y") == std::vector<double>{0, 2, 0, 4, 5, 6});
}

TEST_CASE("what writes outside stays: sinks, inputs marked !mut, and ops the host waits for") {
  Recording r;
  r.define("test.bump(x!mut) -> ()", [](InferContext&) {}, nullptr, nullptr, GESTALT_OP_MUTATES);
  r.define("test.wait(x) -> (y)", like_first(), nullptr, nullptr, GESTALT_OP_PURE | GESTALT_OP_HOST_READ);
  Value* x = r.input("x", {3});
  r.b->apply("test.bump", {x}, {});
  r.op("test.wait", {x});
  r.b->metric("m", r.sum(x), r.sum(x));
  r.op("core.relu", {x});
  remove_dead_nodes(*r.program);
  CHECK(r.count("test.bump") == 1);
  CHECK(r.count("test.wait") == 1);
  CHECK(r.count("core.cast") == 2);
  CHECK(r.count("core.relu") == 0);
}

TEST_CASE("one live output keeps the node") {
  Recording r;
  r.define("test.two(x) -> (a, b)", like_first(2));
  const auto y = r.ops_of("test.two", {r.input("x", {3})});
  r.program->outputs["b"] = y[1];
  remove_dead_nodes(*r.program);
  CHECK(r.count("test.two") == 1);
}
