#include "core/program/memory_plan.h"

#include "tests/program/random_program.h"
#include "tests/catch_compat.hpp"

using namespace gestalt::core;
using namespace gestalt::core::test;

TEST_CASE("in random programs no two live places overlap, whatever the streams") {
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    std::mt19937 random(seed);
    Recording r(kernels_with_workspaces(random));
    record_random(r, random, 10 + static_cast<int>(seed), 1 + static_cast<int>(seed % 3));
    INFO("seed " << seed);
    REQUIRE(play(*r.executable) == "");
    for (uint64_t bytes : r.executable->plan().arena_bytes) CHECK(bytes % r.device->alignment() == 0);
  }
}

TEST_CASE("one stream and several streams compute the same") {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::vector<std::vector<double>> results[2];
    for (int k = 0; k < 2; ++k) {
      std::mt19937 random(seed);
      Recording r(kernels_with_workspaces(random));
      record_random(r, random, 60, k == 0 ? 1 : 3);
      for (int i = 0; i < 3; ++i) {
        if (!r.recorded->find_input("batch:x" + std::to_string(i))) continue;
        std::vector<double> x(48);
        for (size_t j = 0; j < x.size(); ++j) x[j] = 0.01 * static_cast<double>(j) - 0.2 + i;
        r.set("batch:x" + std::to_string(i), x);
      }
      r.run();
      r.run(true);
      for (const auto& [name, v] : r.recorded->outputs) results[k].push_back(r.get(name));
      for (const auto& [name, v] : r.recorded->inputs())
        if (name.starts_with("grad:")) results[k].push_back(r.get(name));
    }
    INFO("seed " << seed);
    CHECK(results[0] == results[1]);
  }
}

TEST_CASE("an output takes the place of a dead input only where its mark allows it") {
  auto overlays = [](const char* last, bool read_later) {
    Recording r;
    r.define("test.none(a) -> (y)", like_first());
    r.add_kernels({{"test.none"}}, "test.none");
    Value* a = r.op("core.relu", {r.input("x", {32})});
    Value* y = r.op(last, {a});
    if (read_later) y = r.op("core.mul", {r.op("core.relu", {y}), a});
    r.program->outputs["y"] = r.op("core.relu", {y});
    r.compile();
    CHECK(play(*r.executable) == "");
    return r.executable->plan().num_overlays;
  };
  CHECK(overlays("core.neg", false) == 1);
  CHECK(overlays("test.none", false) == 0);
  CHECK(overlays("core.neg", true) == 1);  // core.mul over the relu; not core.neg over a, which is read again
}

TEST_CASE("no overlay where the same storage is read twice by the node, or is kept, or is an input") {
  Recording r;
  Value* x = r.input("x", {32});
  Value* a = r.op("core.relu", {x});
  r.program->outputs["squared"] = r.op("core.mul", {a, a});
  Value* kept = r.op("core.relu", {x});
  r.program->outputs["kept"] = kept;
  r.program->outputs["negative"] = r.op("core.neg", {kept});
  r.program->outputs["of_input"] = r.op("core.neg", {x});
  Value* base = r.op("core.relu", {x});
  Value* view = r.op("core.reshape", {base}, {{"shape", std::vector<int64_t>{4, 8}}});
  r.program->outputs["of_view"] = r.op("core.neg", {view});
  r.compile();
  CHECK(r.executable->plan().num_overlays == 0);
  CHECK(play(*r.executable) == "");
}

TEST_CASE("the plan shares memory, and says what it would take without") {
  Recording r;
  Value* y = r.input("x", {1000});
  for (int i = 0; i < 20; ++i) y = r.op("core.relu", {y});
  r.program->outputs["y"] = y;
  r.compile();
  const uint64_t one = (8000 + r.device->alignment() - 1) / r.device->alignment() * r.device->alignment();
  CHECK(r.executable->plan().sum_bytes == 20 * one);
  CHECK(r.executable->plan().arena_bytes[0] == 2 * one);
}

TEST_CASE("named dimensions are planned at the largest size that they can take") {
  Recording r;
  const int64_t t = r.dims.named("tokens", 100), s = r.dims.named("sequences", 10);
  Value* x = r.input("x", {t, 4});
  Value* parts[2];
  const auto cut = r.ops_of("core.split_parts", {x}, {{"dim", int64_t{0}}, {"parts", std::vector<int64_t>{s, r.dims.sub(t, s)}}});
  for (int i = 0; i < 2; ++i) parts[i] = r.op("core.relu", {cut[static_cast<size_t>(i)]});
  r.program->outputs["head"] = parts[0];
  r.program->outputs["rest"] = parts[1];
  r.compile();
  r.executable->set_dims({{"tokens", 100}, {"sequences", 1}});
  CHECK(r.executable->output("rest").shape[0] == 99);
  CHECK(r.executable->plan().places.at(parts[1]).bytes >= 99 * 4 * 8);
  r.set("batch:x", std::vector<double>(400, 1));
  r.run();
  CHECK(r.get("rest") == std::vector<double>(396, 1));
  CHECK(r.get("head") == std::vector<double>(4, 1));
}

TEST_CASE("a program of nothing needs no memory") {
  Recording r;
  r.compile();
  CHECK(r.executable->plan().arena_bytes == std::vector<uint64_t>{0});
  r.run();
  r.run(true);
}

TEST_CASE("empty tensors have places without bytes") {
  Recording r;
  Value* y = r.op("core.neg", {r.op("core.relu", {r.input("x", {0, 3})})});
  r.program->outputs["y"] = y;
  r.compile();
  r.run();
  CHECK(r.get("y").empty());
}
