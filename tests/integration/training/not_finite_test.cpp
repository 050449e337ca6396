// A number that is not finite: the update is skipped, and the place where it began is named.
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>

#include "core/program/flops.h"
#include "tests/catch_compat.hpp"
#include "tests/integration/training/training_run.h"
#include "tests/thrown_error.h"

namespace gestalt::test {

namespace {

namespace fs = std::filesystem;
using Sets = std::vector<std::string>;

const Sets kFourLayers = {"model.layers=4"};

void plant(TrainingRun& run, const std::string& tensor, size_t element, float value) {
  const core::Parameter* p = run.session().tree().find(tensor);
  REQUIRE(p);
  std::vector<char> bytes = run.store().read(run.store().weight(*p));
  reinterpret_cast<float*>(bytes.data())[element] = value;
  run.store().set(*p, bytes.data(), bytes.size());
}

std::string named(TrainingRun& run) {
  const core::Error e = thrown_by([&] { run.trainer().find_not_finite(); });
  CHECK(e.code() == GESTALT_VALIDATION);
  return e.message();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a NaN in a weight of layer 2 skips the update and is named by its path") {
  if (!plugins_built()) return;
  TrainingRun run(kFourLayers);
  run.steps(2);
  plant(run, "model.layers.2.mlp.up.weight", 5, std::numeric_limits<float>::quiet_NaN());
  const Bytes before = run.all_state();
  CHECK(run.steps(1)[0].skipped == 1);
  CHECK(differing(before, run.all_state()) == Sets{});
  const std::string message = named(run);
  CHECK(has(message, "[model.layers.2.mlp.up.weight] element 5"));
}

TEST_CASE("an overflow inside layer 2 is named by op and path") {
  if (!plugins_built()) return;
  TrainingRun run(kFourLayers);
  run.steps(1);
  plant(run, "model.layers.2.mlp.down.weight", 0, 3e38f);
  plant(run, "model.layers.2.mlp.up.weight", 0, 3e38f);
  CHECK(run.steps(1)[0].skipped == 1);
  const std::string message = named(run);
  INFO(message);
  CHECK(has(message, "model.layers.2.mlp"));
  CHECK(has(message, "core."));
}

TEST_CASE("where all numbers are finite, nothing is named and the next update is the one it would have been") {
  if (!plugins_built()) return;
  TrainingRun run(kFourLayers), other(kFourLayers);
  CHECK(run.steps(2) == other.steps(2));
  run.trainer().find_not_finite();
  CHECK(run.steps(2) == other.steps(2));
}

TEST_CASE("the command stops with the place after train.max_skipped skipped updates") {
  if (!plugins_built({"task_train"})) return;
  fs::path folder;
  {
    TrainingRun run(kFourLayers);
    run.steps(1);
    plant(run, "model.layers.2.mlp.up.weight", 5, std::numeric_limits<float>::quiet_NaN());
    folder = run.session().save();
  }
  const fs::path log = work_folder() / "stopped.txt";
  const std::string command = std::string(GESTALT_BUILD_DIR) + "/bin/gestalt train " + folder.native() +
                              " --set train.steps=50 --set train.max_skipped=3 >" + log.native() + " 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream in(log);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  INFO(text);
  CHECK(WEXITSTATUS(status) == 17);
  CHECK(has(text, "in 3 updates in a row, the last at step 4"));
  CHECK(has(text, "model.layers.2.mlp.up.weight"));
}

TEST_CASE("a timed step is the step, and its nodes carry arithmetic") {
  if (!plugins_built()) return;
  TrainingRun run, other;
  double flops = 0;
  int nodes = 0;
  const gestalt_step_result timed = run.trainer().timed_step(
      [&](const core::Program& program, const core::Executable::NodeTime& t) {
        ++nodes;
        CHECK(t.duration_ns >= 0);
        flops += core::node_flops(*t.node->node, program.dims(), core::segment_length(program));
      });
  CHECK(timed.loss == other.trainer().step().loss);
  CHECK(run.steps(1) == other.steps(1));
  CHECK(nodes > 20);
  // Width 32, 2 layers of 4 * 32^2 + 2 * 32 * 64, a head of 256 * 32, and attention; forward and backward of 4 * 32 tokens.
  const double weights = 2 * (4 * 32 * 32 + 2 * 32 * 64) + 256 * 32, attention = 2 * 32.0 / 2 * 2 * 32;
  CHECK(run.trainer().step_flops() == Approx(4 * 32 * 6 * (weights + attention / 2 * 2 / 2)).epsilon(0.05));
  CHECK(flops == Approx(run.trainer().step_flops()).epsilon(0.15));
}

}  // namespace gestalt::test
