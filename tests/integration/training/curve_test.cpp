// The first 100 updates of a small model against PyTorch's on the same weights and batches.
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "tests/catch_compat.hpp"
#include "tests/integration/training/training_run.h"

namespace gestalt::test {

namespace {

namespace fs = std::filesystem;
using namespace core;

constexpr int kSteps = 100;

// Byte tokens of this repository's own licence: real text, always there.
std::vector<std::string> settings() {
  return {"data.path=" + std::string(GESTALT_SOURCE_DIR) + "/LICENSE",
          "data.holdout=none",
          "model.hidden=64",
          "model.layers=3",
          "model.heads=4",
          "model.ffn=256",
          "model.seq_len=64",
          "train.global_batch=8",
          "train.micro_batch=8",
          "optimizer.lr=1e-3",
          "optimizer.warmup_steps=10",
          "optimizer.decay_steps=100",
          "optimizer.beta2=0.95"};
}

void write(const fs::path& file, const void* data, size_t bytes) {
  std::ofstream(file, std::ios::binary).write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
}

// Weights and batches for tests/peers/make_curve.py: NAME.f32 for each parameter, and STEP.tokens.i32, STEP.labels.i32,
// STEP.lr.f64.
void dump(const fs::path& folder) {
  TrainingRun run(settings());
  fs::create_directories(folder);
  std::ofstream shapes(folder / "shapes.txt");
  for (const Parameter* p : run.session().tree().parameters()) {
    const std::vector<char> bytes = run.store().read(run.store().weight(*p));
    write(folder / (p->path + ".f32"), bytes.data(), bytes.size());
    shapes << p->path << ' ' << p->group;
    for (int64_t d : p->global_shape) shapes << ' ' << d;
    shapes << '\n';
  }
  DataSource& data = run.session().data();
  const BatchSpec spec = data.batches("train", 8);
  BatchBuffers batch(run.device(), spec.fields, spec.max_tokens, spec.max_sequences);
  for (int step = 0; step < kSteps; ++step) {
    std::vector<int64_t> samples;
    for (int64_t i = 0; i < 8; ++i) samples.push_back(step * 8 + i);
    int64_t tokens = 0, sequences = 0;
    data.read("train", samples, batch.host(), &tokens, &sequences);
    for (const char* field : {"tokens", "labels"})
      write(folder / (std::to_string(step) + "." + field + ".i32"),
            batch.host()[static_cast<size_t>(batch.index(field))].view.data, static_cast<size_t>(tokens) * 4);
    const double rate = run.trainer().step().lr;
    write(folder / (std::to_string(step) + ".lr.f64"), &rate, sizeof(rate));
  }
}

}  // namespace

TEST_CASE("the first 100 losses are PyTorch's on the same weights and batches") {
  if (!plugins_built()) return;
  if (const char* folder = std::getenv("GESTALT_DUMP_CURVE")) return dump(folder);
  std::ifstream file(std::string(GESTALT_SOURCE_DIR) + "/tests/golden/curve/losses.json");
  const auto golden = nlohmann::json::parse(file);
  const auto losses = golden.at("losses").get<std::vector<double>>();
  const auto norms = golden.at("grad_norms").get<std::vector<double>>();
  REQUIRE(losses.size() == kSteps);
  TrainingRun run(settings());
  double worst = 0, worst_norm = 0;
  for (int step = 0; step < kSteps; ++step) {
    const gestalt_step_result r = run.trainer().step();
    const auto at = static_cast<size_t>(step);
    INFO("step " << step + 1);
    CHECK(r.loss == Approx(losses[at]).margin(1e-3).epsilon(0));
    worst = std::max(worst, std::abs(r.loss - losses[at]));
    worst_norm = std::max(worst_norm, std::abs(r.grad_norm - norms[at]) / norms[at]);
  }
  CHECK(losses.back() < losses.front() - 1);
  WARN("largest difference of a loss " << worst << ", of a gradient norm " << worst_norm << " of it");
}

}  // namespace gestalt::test
