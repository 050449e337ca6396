#include "tests/program/recording.h"
#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;
using namespace gestalt::core::test;
using Catch::Contains;
using gestalt::test::thrown_by;
using List = std::vector<int64_t>;

namespace {
// y = 2 x as an op of a test, with the parts that a case wants.
void vjp_twice(ComposeContext& c) { c.result[0] = c.op("core.scale", {c.grad(0)}, {{"factor", 2.0}}); }
void decompose_twice(ComposeContext& c) { c.result[0] = c.op("core.add", {c.in(0), c.in(0)}); }
}  // namespace

TEST_CASE("several uses of a value and of a parameter add up") {
  Recording r;
  Value *x = r.input("x", {3, 4}), *w = r.param("w", {3, 4}), *v = r.param("v", {4});
  Value* y = r.op("core.add", {r.op("core.mul", {x, w}), v});
  Value* z = r.op("core.mul", {r.op("core.relu", {y}), r.op("core.sub", {y, w})});
  r.loss(r.op("core.add", {z, r.op("core.mul", {y, w})}));
  CHECK(r.gradients().empty());
  CHECK(r.check_gradients() == "");
}

TEST_CASE("matrix products give gradients to both sides and to the bias") {
  for (const bool absent : {false, true}) {
    Recording r;
    Value *x = r.input("x", {5, 3}), *w = r.param("w", {4, 3}), *b = r.param("b", {4});
    Value* y = r.op("core.linear", {x, w, absent ? nullptr : b});
    r.loss(r.op("core.mul", {r.op("core.matmul", {y, w}), r.op("core.matmul", {r.op("core.relu", {y}), w})}));
    CHECK(r.gradients() == (absent ? std::vector<std::string>{"b"} : std::vector<std::string>{}));
    CHECK(r.check_gradients() == "");
  }
}

TEST_CASE("gradients pass through every view op to a parameter") {
  Recording r;
  Value *x = r.input("x", {6}), *w = r.param("w", {4, 6}), *s = r.param("s", {6});
  Value* t = r.op("core.transpose", {w}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}});
  Value* flat = r.op("core.reshape", {t}, {{"shape", List{2, 12}}});
  Value* part = r.op("core.slice", {flat}, {{"dim", int64_t{1}}, {"begin", int64_t{3}}, {"end", int64_t{9}}});
  Value* wide = r.op("core.broadcast", {s}, {{"shape", List{2, 6}}});
  Value* whole = r.op("core.reshape", {w}, {{"shape", List{24}}});
  r.loss(r.op("core.mul", {r.op("core.mul", {part, wide}), x}), "a");
  r.loss(r.op("core.mul", {whole, whole}), "b");
  CHECK(r.gradients().empty());
  CHECK(r.check_gradients() == "");
}

TEST_CASE("an output that nobody uses counts as zero gradient") {
  Recording r;
  Value* w = r.param("w", {2, 10});
  const auto parts = r.ops_of("core.split_parts", {w}, {{"parts", List{3, 4, 3}}});
  r.loss(r.op("core.mul", {parts[0], parts[2]}));
  CHECK(r.gradients().empty());
  CHECK(r.check_gradients() == "");
}

TEST_CASE("a loss may be computed with further, and a parameter may itself be one") {
  Recording r;
  Value *w = r.param("w", {}), *v = r.param("v", {});
  Value* first = r.op("core.mul", {w, v});
  r.loss(first, "first");
  r.loss(r.op("core.mul", {first, first}), "second");
  r.loss(w, "third");
  CHECK(r.gradients().empty());
  CHECK(r.check_gradients() == "");
}

TEST_CASE("one gradient serves two parameters") {
  Recording r;
  Value *w = r.param("w", {3}), *v = r.param("v", {3});
  r.loss(r.op("core.relu", {r.op("core.add", {w, v})}));
  CHECK(r.gradients().empty());
  CHECK(r.check_gradients() == "");
}

TEST_CASE("one parameter may be an op's input twice") {
  Recording r;
  Value* w = r.param("w", {3});
  Value* y = r.op("core.concat", {w, w, r.op("core.add", {w, w})}, {{"dim", int64_t{0}}});
  r.loss(r.op("core.mul", {y, r.input("x", {9})}));
  CHECK(r.gradients().empty());
  CHECK(r.check_gradients() == "");
}

TEST_CASE("an op of more than 64 inputs flows gradients to all or says that it cannot") {
  Recording r;
  std::vector<Value*> many;
  for (int i = 0; i < 70; ++i) many.push_back(r.param("w" + std::to_string(i), {2}));
  r.loss(r.op("core.mul", {r.op("core.concat", many, {{"dim", int64_t{0}}}), r.input("x", {140})}));
  const auto e = thrown_by([&] { r.gradients(); });
  CHECK(e.code() == GESTALT_UNSUPPORTED);
  CHECK_THAT(e.message(), Contains("core.concat") && Contains("70") && Contains("64"));
}

TEST_CASE("a second run adds to the gradients when it is told to") {
  Recording r;
  Value* w = r.param("w", {2});
  r.loss(r.op("core.mul", {w, r.op("core.mul", {w, r.input("x", {2})})}));
  r.gradients();
  r.compile();
  r.set("param:w", {3, 5});
  r.set("batch:x", {1, 10});
  r.run();
  CHECK(r.get("grad:w") == std::vector<double>{6, 100});
  CHECK(r.get("metric:loss.sum")[0] == 259);
  r.run(true);
  CHECK(r.get("grad:w") == std::vector<double>{12, 200});
  CHECK(r.get("metric:loss.sum")[0] == 518);
  CHECK(r.get("metric:loss.weight")[0] == 2);
  r.run(false);
  CHECK(r.get("grad:w") == std::vector<double>{6, 100});
}

TEST_CASE("parameters that no loss depends on are named and get no gradient") {
  Recording r;
  Value* w = r.param("used", {2});
  r.op("core.relu", {r.param("dead_end", {2})});
  r.param("b_never_read", {2});
  r.loss(w);
  CHECK(r.gradients() == std::vector<std::string>{"b_never_read", "dead_end"});
  CHECK(r.recorded->find_input("grad:dead_end") == nullptr);
}

TEST_CASE("no gradient flows through outputs marked nograd, nor to integers") {
  Recording r;
  r.define("test.stat(x) -> (y, s!nograd)", like_first(2), [](ComposeContext& c) {
    CHECK(c.grad(1) == nullptr);
    c.result[0] = c.grad(0);
  });
  r.add_kernels({{"test.stat"}}, "test.stat");
  Value *w = r.param("w", {2}), *v = r.param("v", {2});
  const auto y = r.ops_of("test.stat", {w}), z = r.ops_of("test.stat", {v});
  r.loss(r.op("core.add", {y[0], z[1]}));
  CHECK(r.gradients() == std::vector<std::string>{"v"});
}

TEST_CASE("an op without a gradient rule is replaced by its decomposition, to any depth") {
  Recording r;
  r.define("test.four(x) -> (y)", like_first(), nullptr, [](ComposeContext& c) {
    c.result[0] = c.op("test.twice", {c.op("test.twice", {c.in(0)})});
  });
  r.define("test.twice(x) -> (y)", like_first(), nullptr, decompose_twice);
  Value* w = r.param("w", {3});
  r.loss(r.op("core.mul", {r.op("test.four", {w}), r.input("x", {3})}));
  CHECK(r.gradients().empty());
  CHECK(r.count("test.four") + r.count("test.twice") == 0);
  CHECK(r.check_gradients() == "");
}

TEST_CASE("a decomposition that comes back to its own op is an error, not the end of the stack") {
  Recording r;
  r.define("test.loop(x) -> (y)", like_first(), nullptr,
           [](ComposeContext& c) { c.result[0] = c.op("test.loop", {c.in(0)}); });
  r.loss(r.op("test.loop", {r.param("w", {3})}));
  const auto e = thrown_by([&] { r.gradients(); });
  CHECK(e.code() == GESTALT_INVALID_ARGUMENT);
  CHECK_THAT(e.message(), Contains("test.loop at model.test") && Contains("decompos"));
}

TEST_CASE("a decomposition of several outputs keeps each, given twice or passed through") {
  Recording r;
  r.define("test.spread(x) -> (a, b, c, d)", like_first(4), nullptr, [](ComposeContext& c) {
    Value* y = c.op("core.mul", {c.in(0), c.in(0)});
    c.result = {y, c.in(0), y, c.op("core.reshape", {c.op("core.neg", {y})}, {{"shape", List{3}}})};
  });
  Value* w = r.param("w", {3});
  const auto y = r.ops_of("test.spread", {r.op("core.relu", {w})});
  Value* ab = r.op("core.mul", {y[0], y[1]});
  r.loss(r.op("core.mul", {ab, r.op("core.mul", {y[2], r.op("core.mul", {y[3], r.input("x", {3})})})}));
  CHECK(r.gradients().empty());
  CHECK(r.check_gradients() == "");
}

TEST_CASE("chains of decompositions that pass their input through keep every value") {
  Recording r;
  r.define("test.same(x) -> (y)", like_first(), nullptr, [](ComposeContext& c) { c.result[0] = c.in(0); });
  r.define("test.twice(x) -> (y)", like_first(), nullptr, decompose_twice);
  Value* a = r.op("test.twice", {r.param("w", {3})});
  Value* c = r.op("test.same", {a});
  r.loss(r.op("core.mul", {a, r.op("core.mul", {c, r.input("x", {3})})}));
  CHECK(r.gradients().empty());
  CHECK(r.check_gradients() == "");
}

TEST_CASE("where no rule exists the error names op and place") {
  Recording r;
  r.define("test.hard(x) -> (y)", like_first());
  r.loss(r.op("test.hard", {r.param("w", {3})}));
  const auto e = thrown_by([&] { r.gradients(); });
  CHECK(e.code() == GESTALT_UNSUPPORTED);
  CHECK_THAT(e.message(), Contains("[test.hard at model.test]") && Contains("neither vjp nor decompose"));
}

TEST_CASE("an op that writes its inputs is refused where gradients flow") {
  Recording r;
  r.define("test.bump(x!mut) -> (y)", like_first(), vjp_twice, nullptr, GESTALT_OP_MUTATES);
  r.loss(r.op("test.bump", {r.op("core.relu", {r.param("w", {3})})}));
  CHECK_THAT(thrown_by([&] { r.gradients(); }).message(), Contains("writes its inputs") && Contains("model.test"));
}

TEST_CASE("a rule may leave a gradient empty; a wrong shape or dtype is refused") {
  Recording r;
  r.define("test.pass(x) -> (y)", like_first(), [](ComposeContext& c) { c.result[0] = nullptr; });
  r.define("test.wrong(x) -> (y)", like_first(), [](ComposeContext& c) { c.result[0] = c.op("core.sum", {c.grad(0)}); });
  r.define("test.other(x) -> (y)", like_first(), [](ComposeContext& c) {
    c.result[0] = c.op("core.cast", {c.grad(0)}, {{"dtype", std::string("f32")}});
  });
  {
    Recording empty;
    empty.define("test.pass(x) -> (y)", like_first(), [](ComposeContext& c) { c.result[0] = nullptr; });
    empty.loss(empty.op("test.pass", {empty.param("w", {3})}));
    CHECK(empty.gradients() == std::vector<std::string>{"w"});
  }
  r.loss(r.op("test.wrong", {r.op("core.relu", {r.param("w", {3})})}));
  CHECK_THAT(thrown_by([&] { r.gradients(); }).message(), Contains("gradient of 'x'") && Contains("expected"));
  Recording d;
  d.define("test.other(x) -> (y)", like_first(), [](ComposeContext& c) {
    c.result[0] = c.op("core.cast", {c.grad(0)}, {{"dtype", std::string("f32")}});
  });
  d.loss(d.op("test.other", {d.op("core.relu", {d.param("w", {3})})}));
  CHECK_THAT(thrown_by([&] { d.gradients(); }).message(), Contains("gradient of 'x'") && Contains("f32"));
}

TEST_CASE("losses and metrics must be scalars and have a name of their own") {
  Recording r;
  Value *x = r.input("x", {3}), *s = r.sum(x);
  CHECK_THAT(thrown_by([&] { r.b->loss("l", x, s); }).message(), Contains("scalars") && Contains("[3]"));
  CHECK_THAT(thrown_by([&] { r.b->metric("m", x, s); }).message(), Contains("scalars") && Contains("[3]"));
  CHECK_THAT(thrown_by([&] { r.b->metric("m", s, x); }).message(), Contains("scalars") && Contains("[3]"));
  CHECK_THAT(thrown_by([&] { r.b->metric("m", nullptr, s); }).message(), Contains("scalars"));
  CHECK_THAT(thrown_by([&] { r.b->loss("l", s, nullptr); }).message(), Contains("scalars"));
  r.b->metric("m", s, s);
  CHECK_THAT(thrown_by([&] { r.b->metric("m", s, s); }).message(), Contains("'m' is reported twice"));
}

TEST_CASE("the gradient of a program without parameters or without a loss is nothing") {
  Recording r;
  r.sum(r.input("x", {3}));
  CHECK(r.gradients().empty());
  r.compile();
  r.run();
  CHECK(r.recorded->nodes.empty());
}

TEST_CASE("recording twice gives the same program") {
  auto text = [] {
    Recording r;
    Value* w = r.param("w", {4, 4});
    Value* y = r.op("core.matmul", {r.op("core.relu", {w}), w});
    r.loss(r.op("core.add", {y, w}), "a");
    r.loss(y, "b");
    r.gradients();
    return r.recorded->text();
  };
  CHECK(text() == text());
}
