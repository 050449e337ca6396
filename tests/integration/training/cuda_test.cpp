// Trainings on a GPU: bits that repeat however a step is issued, a run continued by another session, and what it says
// when memory ends. Skipped where there is no GPU.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "tests/catch_compat.hpp"
#include "tests/integration/training/training_run.h"
#include "tests/thrown_error.h"

namespace gestalt::test {

namespace {

using Sets = std::vector<std::string>;

bool gpu() {
  static const bool there = [] {
    try {
      TrainingRun run({"run.device=cuda"});
      return true;
    } catch (const core::Error& e) {
      if (e.code() != GESTALT_UNAVAILABLE && e.code() != GESTALT_CONFIG_ERROR) throw;
      WARN("skipped: " << e.message());
      return false;
    }
  }();
  return there;
}

struct Result {
  std::vector<StepBits> steps;
  Bytes state;
};

// Heads of 64 features, so that the tensor cores' attention takes part where the dtype allows it.
Sets on_gpu(const std::string& dtype, Sets more = {}) {
  Sets sets = {"run.device=cuda", "run.dtype=" + dtype, "model.hidden=128", "run.deterministic=true",
               "model.dropout=0.1"};
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

Result train(const Sets& sets, int num = 8) {
  TrainingRun run(sets);
  Result r;
  r.steps = run.steps(num);
  r.state = run.all_state();
  return r;
}

void check_same(const Result& want, const Result& got, const std::string& what) {
  INFO(what);
  CHECK(want.steps == got.steps);
  CHECK(differing(want.state, got.state) == Sets{});
}

std::vector<double> losses(const Result& r) {
  std::vector<double> out;
  for (const StepBits& s : r.steps) out.push_back(std::bit_cast<double>(s.loss));
  return out;
}

double farthest(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= worst)) worst = std::abs(a[i] - b[i]);
  return worst;
}

}  // namespace

TEST_CASE("steps on a GPU have the same bits twice, captured, on two streams, and node by node") {
  if (!gpu()) return;
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    INFO(dtype);
    const Result direct = train(on_gpu(dtype));
    CHECK(losses(direct).back() < losses(direct).front() - 0.2);
    check_same(direct, train(on_gpu(dtype)), "again");
    check_same(direct, train(on_gpu(dtype, {"run.capture=true"})), "captured");
    check_same(direct, train(on_gpu(dtype, {"run.streams=2"})), "two streams");
    check_same(direct, train(on_gpu(dtype, {"run.capture=true", "run.streams=2"})), "captured, two streams");
    if (std::string_view(dtype) != "f16") check_same(direct, train(on_gpu(dtype, {"run.debug=eager"})), "node by node");
  }
}

TEST_CASE("a GPU trains as the CPU does") {
  if (!gpu()) return;
  for (const auto& [dtype, allowed] : {std::pair{"f32", 1e-3}, {"bf16", 3e-2}, {"f16", 1e-2}}) {
    INFO(dtype);
    Sets cpu = on_gpu(dtype), gpu = on_gpu(dtype);
    cpu[0] = "run.device=cpu";
    CHECK(farthest(losses(train(cpu)), losses(train(gpu))) < allowed);
  }
}

TEST_CASE("a run that is saved and continued on a GPU is the one that was never stopped") {
  if (!gpu()) return;
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    INFO(dtype);
    const Result whole = train(on_gpu(dtype, {"run.capture=true"}));
    const std::string output = "run.output=" + (work_folder() / (std::string("resumed_") + dtype)).native();
    {
      TrainingRun run(on_gpu(dtype, {"run.capture=true", output}));
      run.steps(3);
      run.session().save();
    }
    TrainingRun run(on_gpu(dtype, {"run.capture=true", output}), "auto");
    CHECK(run.trainer().steps_done() == 3);
    CHECK(run.steps(5) == std::vector<StepBits>(whole.steps.begin() + 3, whole.steps.end()));
    CHECK(differing(whole.state, run.all_state()) == Sets{});
  }
}

TEST_CASE("the ledger has what the plan says, and memory that ends shows it") {
  if (!gpu()) return;
  {
    TrainingRun run(on_gpu("bf16"));
    const uint64_t free_before = run.device().free_bytes();
    run.steps(2);
    uint64_t arenas = 0;
    for (uint64_t bytes : run.executable().plan().arena_bytes) arenas += bytes;
    CHECK(run.device().ledger().line(core::Category::kActivations).current >= arenas);
    CHECK(free_before > run.device().free_bytes());
  }
  const core::Error e = thrown_by([] {
    TrainingRun run(on_gpu("bf16"));
    const uint64_t all = run.device().total_bytes();
    run.device().alloc(all, core::Category::kActivations);
  });
  CHECK(e.code() == GESTALT_OUT_OF_MEMORY);
  CHECK(e.message().find("no memory for") != std::string::npos);
  CHECK(e.message().find("weights") != std::string::npos);
}

TEST_CASE("a backend that is named and cannot serve stops the run with shape and reason") {
  if (!gpu()) return;
  const core::Error e = thrown_by([] {
    TrainingRun run(on_gpu("f32", {"kernels.pin={\"core.attention\" = \"gestalt.flash\"}"}));
    run.steps(1);
  });
  CHECK(e.code() == GESTALT_UNAVAILABLE);
  CHECK(e.message().find("gestalt.flash") != std::string::npos);
  CHECK(e.message().find("bf16, f16") != std::string::npos);
}

}  // namespace gestalt::test
