#include "tests/program/recording.h"
#include "tests/catch_compat.hpp"

using namespace gestalt::core;
using namespace gestalt::core::test;

namespace {

// A chain of `layers` modules, each relu(x w) v + x.
struct Chain {
  Recording r{core_kernels(), GESTALT_F32};
  explicit Chain(int layers) {
    Value* x = r.input("x", {8, 4});
    for (int i = 0; i < layers; ++i) {
      const std::string name = "model.layers." + std::to_string(i);
      r.b->path = name;
      Value* up = r.op("core.linear", {x, r.param(name + ".up", {16, 4})});
      Value* act = r.op("core.relu", {up});
      Value* down = r.op("core.matmul", {act, r.param(name + ".down", {16, 4})});
      x = r.op("core.add", {down, x});
    }
    r.b->path = "model";
    r.loss(r.op("core.mul", {x, x}));
    r.gradients();
  }
  std::vector<std::vector<double>> results() {
    r.compile();
    double seed = 0.3;
    std::vector<std::vector<double>> all;
    for (const auto& [name, v] : r.recorded->inputs()) {
      if (name.starts_with("grad:") || name.starts_with("metric:")) continue;
      std::vector<double> values = r.get(name);
      for (double& x : values) x = (seed = 3.7 * seed * (1 - seed)) - 0.5;
      r.set(name, values);
    }
    r.run();
    for (const auto& [name, v] : r.recorded->inputs())
      if (name.starts_with("grad:") || name.starts_with("metric:")) all.push_back(r.get(name));
    return all;
  }
};

}  // namespace

TEST_CASE("recomputing modules changes no bit and needs less memory") {
  Chain plain(6), again(6);
  RecomputePolicy policy;
  policy.paths = {"model.layers.*"};
  CHECK(recompute(*again.r.program, policy) > 0);
  CHECK(plain.results() == again.results());
  CHECK(again.r.executable->plan().arena_bytes[0] < plain.r.executable->plan().arena_bytes[0]);
}

TEST_CASE("recomputing a group of ops changes no bit") {
  Chain plain(3), again(3);
  RecomputePolicy policy;
  policy.groups = {"activation"};
  CHECK(recompute(*again.r.program, policy) == 3);
  CHECK(again.r.count("core.relu") == 6);
  CHECK(plain.results() == again.results());
}

TEST_CASE("only what a pattern names is recomputed, and nothing without a policy") {
  Chain some(4);
  RecomputePolicy policy;
  CHECK(recompute(*some.r.program, policy) == 0);
  policy.paths = {"model.layers.[1-2]"};
  recompute(*some.r.program, policy);
  for (const Node* n : some.r.recorded->nodes)
    if (n->region == Region::kRecompute) CHECK((n->path == "model.layers.1" || n->path == "model.layers.2"));
  CHECK(some.r.count("core.relu") == 6);
}

TEST_CASE("no backward node reads a forward value that is recomputed") {
  Chain c(3);
  RecomputePolicy policy;
  policy.groups = {"activation"};
  recompute(*c.r.program, policy);
  for (const Node* n : c.r.recorded->nodes)
    for (const Value* v : n->in)
      if (v && n->region == Region::kBackward && v->producer && v->producer->op->name() == "core.relu")
        CHECK(v->producer->region == Region::kRecompute);
}

TEST_CASE("views of recomputed values are views of the copies") {
  Recording r(core_kernels(), GESTALT_F32);
  Value* w = r.param("w", {6});
  Value* y = r.op("core.reshape", {r.op("core.relu", {w})}, {{"shape", std::vector<int64_t>{2, 3}}});
  r.loss(r.op("core.mul", {y, y}));
  r.gradients();
  RecomputePolicy policy;
  policy.groups = {"activation"};
  CHECK(recompute(*r.program, policy) == 1);
  r.compile();
  r.set("param:w", {-1, 2, 3, -4, 5, 6});
  r.run();
  CHECK(r.get("grad:w") == std::vector<double>{0, 4, 6, 0, 10, 12});
}

TEST_CASE("ops that are not pure are never run twice") {
  Recording r(core_kernels(), GESTALT_F32);
  r.define("test.count(x) -> (y)", like_first(), [](ComposeContext& c) {
    c.result[0] = c.op("core.mul", {c.grad(0), c.out(0)});
  }, nullptr, 0);
  r.add_kernels({{"test.count"}}, "test.count");
  r.b->path = "model.layers.0";
  Value* y = r.op("test.count", {r.param("w", {3})});
  r.b->path = "model";
  r.loss(y);
  r.gradients();
  RecomputePolicy policy;
  policy.paths = {"model.layers.*"};
  CHECK(recompute(*r.program, policy) == 0);
  CHECK(r.count("test.count") == 1);
}
