#include "core/program/bind.h"

#include "tests/program/recording.h"
#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;
using namespace gestalt::core::test;
using Catch::Contains;
using gestalt::test::thrown_by;
using List = std::vector<int64_t>;

namespace {

constexpr uint64_t kPlain = GESTALT_KERNEL_DETERMINISTIC | GESTALT_KERNEL_ANY_SHAPE;

std::vector<FakeKernel> without(const std::string& op) {
  std::vector<FakeKernel> all = core_kernels();
  std::erase_if(all, [&](const FakeKernel& k) { return k.op == op; });
  return all;
}

FakeKernel kernel(const std::string& op, const std::string& backend, uint64_t flags = kWilling) {
  FakeKernel k;
  k.op = op;
  k.backend = backend;
  k.flags = flags;
  return k;
}

std::string chosen(const Recording& r, const std::string& op) {
  std::string all;
  for (const BoundNode& b : r.executable->binding().nodes())
    if (b.node->op->name() == op)
      all += (all.empty() ? "" : " ") + std::string(b.kernel->backend.data, b.kernel->backend.size) + "/" + b.chosen_by;
  return all;
}

// relu by three backends.
struct Three {
  Recording r{without("core.relu")};
  explicit Three(const std::string& a_refuses = "", int32_t code = GESTALT_UNSUPPORTED) {
    FakeKernel a = kernel("core.relu", "a.cpu");
    a.refuses = a_refuses;
    a.refuse_code = code;
    r.add_kernels({a}, "acme.a");
    r.add_kernels({kernel("core.relu", "b.cpu"), kernel("core.relu", "c.cpu")}, "acme.b");
    r.b->path = "model.layers.0.mlp";
    Value* y = r.op("core.relu", {r.input("x", {3})});
    r.b->path = "model.layers.1.mlp";
    r.program->outputs["y"] = r.op("core.relu", {y});
  }
};

}  // namespace

TEST_CASE("kernels are tried in load order, or in the order that the run names") {
  Three plain;
  plain.r.compile();
  CHECK(chosen(plain.r, "core.relu") == "a.cpu/load order a.cpu/load order");
  Three ordered;
  KernelPolicy policy;
  policy.order = {"c.cpu", "a.cpu"};
  ordered.r.compile(policy);
  CHECK(chosen(ordered.r, "core.relu") == "c.cpu/order c.cpu/order");
}

TEST_CASE("a pin beats the order, and a rule beats the pin where it matches") {
  Three t;
  KernelPolicy policy;
  policy.order = {"c.cpu"};
  policy.pins["core.relu"] = "b.cpu";
  policy.rules = {{"model.layers.1.**", "core.relu", "a.cpu", "x.toml:5"}};
  t.r.compile(policy);
  CHECK(chosen(t.r, "core.relu") == "b.cpu/pin a.cpu/rule x.toml:5");
}

TEST_CASE("a kernel that declines leaves the next one to serve, and its reason in the table") {
  Three t("only for five elements");
  t.r.compile();
  CHECK(chosen(t.r, "core.relu") == "b.cpu/load order b.cpu/load order");
  const std::string table = t.r.executable->binding().table();
  CHECK_THAT(table, Contains("core.relu") && Contains("b.cpu") && Contains("acme.b"));
  CHECK_THAT(table, Contains("refused by a.cpu: only for five elements"));
}

TEST_CASE("any other status of prepare stops with op, place, backend and plugin") {
  Three t("out of patience", GESTALT_INTERNAL);
  const auto e = thrown_by([&] { t.r.compile(); });
  CHECK(e.code() == GESTALT_INTERNAL);
  CHECK_THAT(e.message(), Contains("[core.relu at model.layers.0.mlp]") && Contains("a.cpu") && Contains("acme.a") &&
                              Contains("out of patience"));
}

TEST_CASE("two rules that claim one place are a conflict that names both") {
  Three t;
  KernelPolicy policy;
  policy.rules = {{"model.layers.*.mlp", "core.relu", "a.cpu", "x.toml:5"}, {"model.**", "core.relu", "b.cpu", "x.toml:9"}};
  const auto e = thrown_by([&] { t.r.compile(policy); });
  CHECK(e.code() == GESTALT_CONFIG_ERROR);
  CHECK_THAT(e.message(), Contains("claimed twice") && Contains("x.toml:5") && Contains("x.toml:9"));
}

TEST_CASE("a rule or pin that cannot be met does not fall back") {
  for (const bool rule : {true, false}) {
    Three t;
    KernelPolicy policy;
    if (rule)
      policy.rules = {{"model.**", "core.relu", "z.cpu", "x.toml:5"}};
    else
      policy.pins["core.relu"] = "z.cpu";
    const auto e = thrown_by([&] { t.r.compile(policy); });
    CHECK(e.code() == GESTALT_UNAVAILABLE);
    CHECK_THAT(e.message(), Contains("z.cpu: has no kernel for this op on device 'cpu'") &&
                                Contains(rule ? "rule x.toml:5" : "pin"));
  }
}

TEST_CASE("an op without a kernel lists every reason") {
  Recording r(without("core.relu"));
  FakeKernel a = kernel("core.relu", "a.cpu"), b = kernel("core.relu", "b.cpu");
  a.refuses = "odd sizes only";
  b.refuses = "not on Mondays";
  r.add_kernels({a, b}, "acme.a");
  r.program->outputs["y"] = r.op("core.relu", {r.op("core.neg", {r.input("x", {3})})});
  const auto e = thrown_by([&] { r.compile(); });
  CHECK(e.code() == GESTALT_UNAVAILABLE);
  CHECK_THAT(e.message(), Contains("[core.relu at model.test] no kernel serves it on device 'cpu'") &&
                              Contains("a.cpu: odd sizes only") && Contains("b.cpu: not on Mondays"));
  CHECK(FakePlugin::states_alive() == 0);  // also of core.neg, which was bound before
}

TEST_CASE("without any kernel the message says where one would come from") {
  Recording none(without("core.relu"));
  none.program->outputs["y"] = none.op("core.relu", {none.input("x", {3})});
  CHECK_THAT(thrown_by([&] { none.compile(); }).message(), Contains("no loaded plugin has one"));
  Recording other(without("core.relu"));
  other.add_kernels({kernel("core.relu", "a.cpu")}, "acme.a");
  other.program->outputs["y"] = other.op("core.relu", {other.input("x", {3})});
  KernelPolicy policy;
  policy.order = {"test.cpu"};
  CHECK_THAT(thrown_by([&] { other.compile(policy); }).message(), Contains("none of the backends") && Contains("test.cpu"));
}

TEST_CASE("a run that asks for determinism passes over kernels that do not promise it") {
  Recording r(without("core.relu"));
  r.add_kernels({kernel("core.relu", "fast.cpu", GESTALT_KERNEL_STRIDED), kernel("core.relu", "slow.cpu")}, "acme.a");
  r.program->outputs["y"] = r.op("core.relu", {r.input("x", {3})});
  KernelPolicy policy;
  policy.require = GESTALT_REQUIRE_DETERMINISTIC;
  r.compile(policy);
  CHECK(chosen(r, "core.relu") == "slow.cpu/load order");
  CHECK_THAT(r.executable->binding().table(), Contains("fast.cpu: is not deterministic"));
}

TEST_CASE("a kernel that takes no strides gets a contiguous copy, and only where it is needed") {
  Recording r(without("core.relu"));
  r.add_kernels({kernel("core.relu", "a.cpu", kPlain)}, "acme.a");
  Value* x = r.input("x", {2, 3});
  r.program->outputs["y"] =
      r.op("core.relu", {r.op("core.transpose", {x}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}})});
  r.program->outputs["z"] = r.op("core.relu", {r.op("core.reshape", {x}, {{"shape", List{6}}})});
  r.compile();
  CHECK(r.count("core.copy") == 1);
  r.set("batch:x", {1, 2, 3, -4, 5, -6});
  r.run();
  CHECK(r.get("y") == std::vector<double>{1, 0, 2, 5, 3, 0});
  CHECK(r.get("z") == std::vector<double>{1, 2, 3, 0, 5, 0});
}

TEST_CASE("a refused kernel leaves no copies behind") {
  Recording r(without("core.relu"));
  FakeKernel a = kernel("core.relu", "a.cpu", kPlain);
  a.refuses = "no";
  r.add_kernels({a, kernel("core.relu", "b.cpu")}, "acme.a");
  Value* x = r.input("x", {2, 3});
  r.program->outputs["y"] =
      r.op("core.relu", {r.op("core.transpose", {x}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}})});
  r.compile();
  CHECK(r.count("core.copy") == 0);
  CHECK(chosen(r, "core.relu") == "b.cpu/load order");
}

TEST_CASE("a kernel that does not accumulate writes a temporary that a cast adds") {
  for (const bool by_prepare : {false, true}) {
    Recording r(without("core.matmul"));
    FakeKernel k = kernel("core.matmul", "a.cpu", by_prepare ? kWilling : kPlain | GESTALT_KERNEL_STRIDED);
    k.refuses_to_accumulate = by_prepare;
    r.add_kernels({k}, "acme.a");
    Value *x = r.input("x", {2, 2}), *w = r.param("w", {2, 2});
    r.loss(r.op("core.matmul", {x, w}));
    r.gradients();
    const size_t casts = r.count("core.cast");
    r.compile();
    CHECK(r.count("core.cast") == casts + 1);
    r.set("batch:x", {1, 2, 3, 4});
    r.run();
    r.run(true);
    CHECK(r.get("grad:w") == std::vector<double>{8, 8, 12, 12});
  }
}

TEST_CASE("a cast that cannot accumulate is a missing kernel, not the end of the stack") {
  Recording r(without("core.cast"));
  r.add_kernels({kernel("core.cast", "a.cpu", kPlain)}, "acme.a");
  r.loss(r.param("w", {3}));
  r.gradients();
  const auto e = thrown_by([&] { r.compile(); });
  CHECK(e.code() == GESTALT_UNAVAILABLE);
  CHECK_THAT(e.message(), Contains("core.cast") && Contains("a.cpu: does not accumulate"));
}

TEST_CASE("an op that no kernel serves is decomposed, and the table says why") {
  Recording r;
  r.define("test.twice(x) -> (y)", like_first(), nullptr,
           [](ComposeContext& c) { c.result[0] = c.op("core.add", {c.in(0), c.in(0)}); });
  FakeKernel k = kernel("test.twice", "a.cpu");
  k.refuses = "not today";
  r.add_kernels({k}, "test.a");
  r.program->outputs["y"] = r.op("core.neg", {r.op("test.twice", {r.input("x", {2})})});
  r.compile();
  CHECK(r.count("test.twice") == 0);
  CHECK_THAT(r.executable->binding().table(), Contains("test.twice at model.test: no kernel, decomposed (a.cpu: not today)"));
  r.set("batch:x", {1, -3});
  r.run();
  CHECK(r.get("y") == std::vector<double>{-2, 6});
}

TEST_CASE("decomposed outputs keep their names, sinks and several readers") {
  Recording r;
  // Both outputs are sent to gradient buffers, and the second is computed from the first.
  r.define("test.pair_bwd(dy) -> (da!acc(f32), db!acc(f32))", like_first(2), nullptr, [](ComposeContext& c) {
    c.result[0] = c.op("core.add", {c.in(0), c.in(0)});
    c.result[1] = c.op("core.add", {c.result[0], c.in(0)});
  });
  r.define("test.pair(a, b) -> (y)", like_first(), [](ComposeContext& c) {
    const auto g = c.ops("test.pair_bwd", {c.grad(0)});
    c.result = {g[0], g[1]};
  });
  r.add_kernels({kernel("test.pair", "a.cpu")}, "test.a");
  r.loss(r.op("core.mul", {r.op("test.pair", {r.param("a", {2}), r.param("b", {2})}), r.input("x", {2})}));
  CHECK(r.gradients().empty());
  r.compile();
  r.set("batch:x", {1, 10});
  for (const bool accumulate : {false, true}) r.run(accumulate);
  CHECK(r.get("grad:a") == std::vector<double>{4, 40});
  CHECK(r.get("grad:b") == std::vector<double>{6, 60});
}

TEST_CASE("a decomposition that passes on an input made by another decomposition keeps both") {
  Recording r;
  r.define("test.twice(x) -> (y)", like_first(), nullptr,
           [](ComposeContext& c) { c.result[0] = c.op("core.add", {c.in(0), c.in(0)}); });
  r.define("test.same(x) -> (y)", like_first(), nullptr, [](ComposeContext& c) { c.result[0] = c.in(0); });
  Value* a = r.op("test.twice", {r.input("x", {2})});
  r.program->outputs["same"] = r.op("test.same", {a});
  r.program->outputs["twice"] = a;
  r.compile();
  r.set("batch:x", {1, 5});
  r.run();
  CHECK(r.get("same") == std::vector<double>{2, 10});
  CHECK(r.get("twice") == std::vector<double>{2, 10});
}

TEST_CASE("decompositions are refused when they give too little, the wrong shape, or themselves") {
  auto message = [](ComposeFn decompose) {
    Recording r;
    r.define("test.odd(x) -> (a, b)", like_first(2), nullptr, decompose);
    r.program->outputs["y"] = r.op("test.odd", {r.input("x", {2})});
    return thrown_by([&] { r.compile(); }).message();
  };
  CHECK_THAT(message([](ComposeContext& c) { c.result = {c.in(0)}; }), Contains("made 1 outputs, expected 2"));
  CHECK_THAT(message([](ComposeContext& c) { c.result = {c.in(0), nullptr}; }), Contains("output 1 is -"));
  CHECK_THAT(message([](ComposeContext& c) { c.result = {c.in(0), c.op("core.sum", {c.in(0)})}; }),
             Contains("output 1") && Contains("expected"));
  CHECK_THAT(message([](ComposeContext& c) { c.result = c.ops("test.odd", {c.in(0)}); }),
             Contains("test.odd") && Contains("decompos"));
}

TEST_CASE("an absent optional input reaches prepare and run as nothing") {
  Recording r;
  r.define("test.maybe(x, a?, b?) -> (y)", like_first());
  r.add_kernels({kernel("test.maybe", "a.cpu")}, "test.a");
  Value *x = r.input("x", {2}), *z = r.input("z", {2});
  r.program->outputs["none"] = r.op("test.maybe", {x});
  r.program->outputs["second"] = r.op("test.maybe", {x, nullptr, z});
  r.compile();
  r.set("batch:x", {1, 2});
  r.set("batch:z", {10, 20});
  r.run();
  CHECK(r.get("none") == std::vector<double>{1, 2});
  CHECK(r.get("second") == std::vector<double>{11, 22});
}

TEST_CASE("every state that prepare made is destroyed once") {
  {
    Three t;
    t.r.compile();
    CHECK(FakePlugin::states_alive() == 2);
  }
  CHECK(FakePlugin::states_alive() == 0);
}

TEST_CASE("a copy that cannot be made leaks no state of the kernel that wanted it") {
  std::vector<FakeKernel> kernels = without("core.relu");
  std::erase_if(kernels, [](const FakeKernel& k) { return k.op == "core.copy"; });
  {
    Recording r(kernels);
    r.add_kernels({kernel("core.relu", "a.cpu", kPlain)}, "acme.a");
    r.program->outputs["y"] = r.op(
        "core.relu", {r.op("core.transpose", {r.input("x", {2, 3})}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}})});
    CHECK(thrown_by([&] { r.compile(); }).code() == GESTALT_UNAVAILABLE);
  }
  CHECK(FakePlugin::states_alive() == 0);
}

TEST_CASE("rules and pins that match nothing are reported") {
  Three t;
  KernelPolicy policy;
  policy.rules = {{"model.layers.7.**", "core.relu", "a.cpu", "x.toml:5"}, {"model.**", "core.relu", "a.cpu", "x.toml:6"}};
  policy.pins["core.gelu"] = "a.cpu";
  const auto unused = unused_rules(policy, {t.r.recorded});
  REQUIRE(unused.size() == 2);
  CHECK_THAT(unused[0], Contains("x.toml:5") && Contains("model.layers.7.**"));
  CHECK_THAT(unused[1], Contains("core.gelu"));
}
