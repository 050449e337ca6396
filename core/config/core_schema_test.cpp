#include "core/config/schema.h"
#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;

namespace {

constexpr const char* kRun = R"(
[run]
name = "demo"
[plugins]
use = ["gestalt.decoder"]
[kernels]
cpu = ["gestalt.cpu"]
pin = { "core.attention" = "gestalt.cpu" }
[[kernels.rule]]
where = "model.layers.[0-3].*"
op = "core.matmul"
backend = "gestalt.cpu"
[model]
type = "gestalt.decoder"
slots = { mlp = "acme.mlp" }
[optimizer]
type = "gestalt.adamw"
lr = 1e-3
schedule = "wsd"
wsd_decay_steps = 10
groups = [{ where = "**.bias", weight_decay = 0 }]
[train]
steps = 5
global_batch = 8
[metrics]
trackers = ["gestalt.jsonl"]
)";

Config checked(const std::vector<std::string>& sets = {}) {
  Config c = Config::from_text(kRun, "x.toml", sets);
  check(c, core_schema());
  return c;
}

std::string problem(const std::vector<std::string>& sets) {
  return gestalt::test::message_of([&] { checked(sets); });
}

}  // namespace

TEST_CASE("A run file of every core section is accepted and completed") {
  const Config c = checked();
  CHECK(c.i64("run.seed") == 1);
  CHECK(c.str("run.dtype") == "f32");
  CHECK(c.str("run.output") == "runs/demo");
  CHECK(c.str("plugins.trust") == "named");
  CHECK(c.str("mesh.dp") == "rest");
  CHECK(c.f64("optimizer.clip") == 1.0);
  CHECK(c.str("optimizer.wsd_style") == "exponential");
  CHECK(c.f64("optimizer.groups[0].lr_scale") == 1.0);
  CHECK_FALSE(c.has("optimizer.decay_steps"));
  CHECK_FALSE(c.has("checkpoint"));
}

TEST_CASE("Keys of another schedule have no effect and say so") {
  CHECK(problem({"optimizer.schedule=cosine"}) ==
        "x.toml:20: [optimizer.wsd_decay_steps] has no effect because 'optimizer.schedule' is \"cosine\" (--set); it "
        "counts only "
        "when schedule=wsd");
  CHECK_THAT(problem({"optimizer.schedule=constant", "optimizer.min_lr=0.1"}),
             Catch::Contains("[optimizer.min_lr] has no effect"));
}

TEST_CASE("A lock file counts only under trust level locked, where it is needed") {
  CHECK_THAT(problem({"plugins.lock=x"}), Catch::Contains("[plugins.lock] has no effect"));
  CHECK_THAT(problem({"plugins.trust=locked"}), Catch::Contains("[plugins.lock] missing, expected file for core"));
}

TEST_CASE("An empty run file says what is missing") {
  Config c = Config::from_text("", "x.toml");
  CHECK(gestalt::test::message_of([&] { check(c, core_schema()); }) ==
        "[run.name] missing, expected str for core: name of the run, part of its folder\n"
        "[plugins.use] missing, expected str[] for core: ids of the plugins that may act in this run");
}

TEST_CASE("The data parallel size is a number or the rest") {
  CHECK(checked({"mesh.dp=4"}).i64("mesh.dp") == 4);
  CHECK_THAT(problem({"mesh.dp=all"}), Catch::Contains("expected one of rest"));
  CHECK_THAT(problem({"mesh.tp=0"}), Catch::Contains("[mesh.tp] out of range, got 0, expected at least 1"));
}
