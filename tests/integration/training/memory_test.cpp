// What the plan says, what the arenas and the ledger hold, and what a step asks the system for.
#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/runtime/parallel.h"
#include "tests/catch_compat.hpp"
#include "tests/integration/training/allocation_hook.h"
#include "tests/integration/training/training_run.h"

namespace gestalt::test {

namespace {

using Sets = std::vector<std::string>;

const std::vector<Sets>& machines() {
  static const std::vector<Sets> all = {{},
                                        {"run.streams=2"},
                                        {"run.device=sim", "run.streams=2", "device.max_delay_us=0"},
                                        {"run.dtype=bf16", "run.device=sim", "device.max_delay_us=0"}};
  return all;
}

// What a command prints, and its exit code.
std::pair<std::string, int> output_of(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe);
  char block[4096];
  for (size_t n; (n = std::fread(block, 1, sizeof block, pipe)) > 0;) out.append(block, n);
  return {out, ::pclose(pipe)};
}

uint64_t held(TrainingRun& run, core::Category category) { return run.device().ledger().line(category).current; }

}  // namespace

TEST_CASE("arenas are as large as the plans, to the byte, and the ledger says the same") {
  if (!plugins_built()) return;
  for (const Sets& sets : machines()) {
    INFO(fmt::format("{}", fmt::join(sets, " ")));
    TrainingRun run(sets);
    run.steps(2);
    core::ArenaSet& arenas = run.session().machine().arenas();
    const core::MemoryPlan& train = run.executable().plan();
    const core::MemoryPlan& update = run.trainer().update_program().executable().plan();
    CHECK(train.arena_bytes.size() == run.session().machine().streams().size());
    CHECK(update.arena_bytes.size() == 1);
    uint64_t total = 0;
    for (size_t s = 0; s < train.arena_bytes.size(); ++s) {
      const uint64_t expected = std::max(train.arena_bytes[s], s == 0 ? update.arena_bytes[0] : 0);
      CHECK(arenas.bytes(s) == expected);
      total += expected;
    }
    CHECK(arenas.total_bytes() == total);
    CHECK(held(run, core::Category::kActivations) == total);

    // The last byte of an arena belongs to somebody.
    for (const core::MemoryPlan* plan : {&train, &update}) {
      std::vector<uint64_t> ends(plan->arena_bytes.size(), 0);
      auto see = [&](const core::MemoryPlan::Place& p) {
        if (p.bytes > 0)
          ends[static_cast<size_t>(p.stream)] = std::max(ends[static_cast<size_t>(p.stream)], p.offset + p.bytes);
      };
      for (const auto& [value, place] : plan->places) see(place);
      for (const auto& place : plan->workspaces) see(place);
      CHECK(ends == plan->arena_bytes);
      uint64_t sum = 0;
      for (uint64_t b : plan->arena_bytes) sum += b;
      CHECK(sum <= plan->sum_bytes);
    }
    CHECK(train.arena_bytes[0] < train.sum_bytes);
  }
}

TEST_CASE("explain plan prints the plan and the memory of a run") {
  if (!plugins_built()) return;
  const std::string command = std::string(GESTALT_BUILD_DIR) + "/bin/gestalt";
  if (!std::filesystem::exists(command)) {
    WARN("skipped: " << command << " is not built");
    return;
  }
  for (const Sets& sets : machines()) {
    INFO(fmt::format("{}", fmt::join(sets, " ")));
    std::string line = command + " explain plan --json " + run_file().native();
    for (const std::string& s : sets) line += " --set " + s;
    const auto [text, status] = output_of(line + " 2>/dev/null");
    REQUIRE(status == 0);
    const nlohmann::json printed = nlohmann::json::parse(text);
    TrainingRun run(sets);
    run.steps(1);
    REQUIRE(printed["programs"].size() == 2);
    CHECK(printed["programs"][0]["arena_bytes"].get<std::vector<uint64_t>>() == run.executable().plan().arena_bytes);
    CHECK(printed["programs"][1]["arena_bytes"].get<std::vector<uint64_t>>() ==
          run.trainer().update_program().executable().plan().arena_bytes);
    CHECK(printed["programs"][0]["bytes_without_sharing"].get<uint64_t>() == run.executable().plan().sum_bytes);
    CHECK(printed["parameters"].get<int64_t>() == run.session().tree().num_parameters());
    const auto& memory = printed["memory"];
    CHECK(memory["weights"].get<uint64_t>() == held(run, core::Category::kWeights));
    CHECK(memory["gradients"].get<uint64_t>() == held(run, core::Category::kGradients));
    CHECK(memory["master"].get<uint64_t>() == held(run, core::Category::kMaster));
    CHECK(memory["optimizer"].get<uint64_t>() == held(run, core::Category::kOptimizer));
  }
}

TEST_CASE("the hook sees what it should") {
  if (!AllocationCount::works()) return;
  AllocationCount count;
  std::vector<int>* made = new std::vector<int>(1000);
  const int64_t seen = count.end();
  CHECK(seen == 2);
  CHECK(made->size() == 1000);
  delete made;
}

TEST_CASE("from the second step on the run loop allocates nothing, on none of its threads") {
  if (!plugins_built()) return;
  if (!AllocationCount::works()) {
    WARN("skipped: sanitizers have their own malloc");
    return;
  }
  std::vector<Sets> all = machines();
  all.push_back({"run.device=sim", "run.streams=2", "run.capture=true", "device.max_delay_us=0"});
  all.push_back({"optimizer.type=gestalt.sgd", "optimizer.momentum=0.9", "model.norm=layer", "model.activation=swiglu",
                 "model.attention_bias=true", "model.positions=learned"});
  for (Sets sets : all) {
    sets.push_back("model.dropout=0.1");
    INFO(fmt::format("{}", fmt::join(sets, " ")));
    TrainingRun run(sets);
    // The two stream threads of sim share the team in an order that chance decides, and libgomp makes a pool for a thread
    // that enters for the first time, in whatever step that is.
    const bool shared_team = std::find(sets.begin(), sets.end(), "run.streams=2") != sets.end() &&
                             std::find(sets.begin(), sets.end(), "run.device=sim") != sets.end();
    const int64_t threads = core::parallel()->num_threads(core::parallel()->self);
    if (shared_team) core::set_num_threads(1);
    run.steps(1);
    core::Machine& machine = run.session().machine();
    const bool capture = run.session().run().config().boolean("run.capture", false);
    // The step's own programs, run apart from the reading of data around them.
    auto& loss = const_cast<core::Compiled&>(run.trainer().loss_program().compiled());
    auto& update = const_cast<core::Compiled&>(run.trainer().update_program());
    AllocationCount count;
    loss.run(machine.device(), machine.streams(), false, capture);
    loss.run(machine.device(), machine.streams(), true, capture);
    update.run(machine.device(), machine.streams(), false, capture);
    machine.device().sync();
    const int64_t seen = count.end();
    core::set_num_threads(threads);
    INFO("the first is " << count.first());
    CHECK(seen == 0);
  }
}

}  // namespace gestalt::test
