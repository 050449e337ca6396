#include "core/program/schedule.h"

#include "tests/program/random_program.h"
#include "tests/catch_compat.hpp"

using namespace gestalt::core;
using namespace gestalt::core::test;

namespace {
size_t count(const Schedule& s, Schedule::Kind kind) {
  return static_cast<size_t>(std::count_if(s.items.begin(), s.items.end(), [&](const auto& i) { return i.kind == kind; }));
}
}  // namespace

TEST_CASE("one stream needs no events") {
  Recording r;
  r.program->outputs["y"] = r.op("core.relu", {r.op("core.neg", {r.input("x", {3})})});
  r.compile();
  const Schedule& s = r.executable->schedule();
  CHECK(s.num_streams == 1);
  CHECK(s.num_events == 0);
  CHECK(s.items.size() == 2);
}

TEST_CASE("streams fork at the beginning and join at the end") {
  Recording r;
  r.program->outputs["a"] = r.op("core.relu", {r.input("x", {3})});
  r.program->outputs["b"] = r.op("core.neg", {r.input("x", {3})});
  r.program->nodes[1]->stream = 1;
  r.compile();
  const Schedule& s = r.executable->schedule();
  using Kind = Schedule::Kind;
  REQUIRE(s.items.size() == 6);
  CHECK((s.items[0].kind == Kind::kRecord && s.items[0].stream == 0));
  CHECK((s.items[1].kind == Kind::kWait && s.items[1].stream == 1));
  CHECK((s.items[4].kind == Kind::kRecord && s.items[4].stream == 1));
  CHECK((s.items[5].kind == Kind::kWait && s.items[5].stream == 0));
}

TEST_CASE("a wait that an earlier one covers is left out") {
  Recording r;
  Value* a = r.op("core.relu", {r.input("x", {3})});
  Value* b = r.op("core.neg", {a});
  Value* c = r.op("core.add", {b, a});  // on the other stream, needs both: the wait for b covers a
  Value* d = r.op("core.add", {c, b});
  r.program->outputs["d"] = d;
  r.program->nodes[2]->stream = r.program->nodes[3]->stream = 1;
  r.compile();
  CHECK(count(r.executable->schedule(), Schedule::Kind::kWait) == 3);  // fork, b, join
  CHECK(play(*r.executable) == "");
}

TEST_CASE("a writer waits for readers of other streams, a reader for the writer") {
  Recording r;
  r.define("test.bump(x!mut) -> ()", [](InferContext&) {}, nullptr, nullptr, GESTALT_OP_MUTATES);
  r.add_kernels({{"test.bump"}}, "test.bump");
  Value* x = r.input("x", {3});
  r.program->outputs["before"] = r.op("core.relu", {x});
  r.b->apply("test.bump", {x}, {});
  r.program->outputs["after"] = r.op("core.neg", {x});
  r.program->nodes[1]->stream = 1;
  r.compile();
  const Schedule& s = r.executable->schedule();
  CHECK(s.clocks[1][0] == 1);  // bump has waited for the first reader
  CHECK(s.clocks[2][1] == 2);  // the second reader for bump
}

TEST_CASE("two contributions to one gradient on two streams are ordered") {
  Recording r;
  Value* g = r.program->input("grad:w", TensorType(GESTALT_F64, {3}));
  r.b->sink_by_cast(r.input("x", {3}), g);
  r.b->sink_by_cast(r.input("y", {3}), g);
  r.program->nodes[1]->stream = 1;
  r.compile();
  CHECK(r.executable->schedule().clocks[1][0] == 1);
  r.set("batch:x", {1, 2, 3});
  r.set("batch:y", {10, 20, 30});
  r.run();
  CHECK(r.get("grad:w") == std::vector<double>{11, 22, 33});
  r.run(true);
  CHECK(r.get("grad:w") == std::vector<double>{22, 44, 66});
}

TEST_CASE("weight gradients leave the critical path when there are two streams") {
  Recording r;
  Value *x = r.input("x", {5, 4}), *w = r.param("w", {4, 4}), *v = r.param("v", {4, 4});
  r.loss(r.op("core.relu", {r.op("core.matmul", {r.op("core.relu", {r.op("core.matmul", {x, w})}), v})}));
  r.gradients();
  r.compile({}, 2);
  for (const Node* n : r.recorded->nodes) {
    if (n->region != Region::kBackward || n->out.empty()) continue;
    CHECK(n->stream == (n->out[0]->sink ? 1 : 0));
  }
  CHECK(play(*r.executable) == "");
  CHECK(r.check_gradients() == "");
}
