// One training, run in every way that must not change a bit.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cstring>

#include "core/runtime/parallel.h"
#include "tests/catch_compat.hpp"
#include "tests/integration/training/training_run.h"
#include "tests/thrown_error.h"

namespace gestalt::test {

namespace {

constexpr int kSteps = 20;

using Sets = std::vector<std::string>;

struct Result {
  std::vector<StepBits> steps;
  Bytes state;
};

// Dropout on, so that the random numbers are compared too.
Result train(Sets sets, int num = kSteps) {
  sets.insert(sets.begin(), "model.dropout=0.1");
  TrainingRun run(sets);
  Result r;
  r.steps = run.steps(num);
  r.state = run.all_state();
  return r;
}

void check_same(const Result& want, const Result& got, const std::string& what) {
  INFO(what);
  CHECK(want.steps == got.steps);
  CHECK(differing(want.state, got.state) == std::vector<std::string>{});
}

const Result& reference() {
  static const Result r = train({});
  return r;
}

Sets sim(int streams, int seed) {
  return {"run.device=sim", "run.streams=" + std::to_string(streams), "device.seed=" + std::to_string(seed),
          "device.max_delay_us=10"};
}

}  // namespace

TEST_CASE("twenty updates have the same bits twice, and change every parameter") {
  if (!plugins_built()) return;
  const Result& once = reference();
  check_same(once, train({}), "cpu again");
  const Bytes begin = TrainingRun({"model.dropout=0.1"}).weights();
  for (const auto& [name, bytes] : begin) {
    INFO(name);
    CHECK(once.state.at(name) != bytes);
  }
  double first = 0, last = 0;
  std::memcpy(&first, &once.steps.front().loss, 8);
  std::memcpy(&last, &once.steps.back().loss, 8);
  CHECK(first == Approx(5.545).margin(0.1));  // ln 256
  CHECK(last < first - 1);
}

TEST_CASE("cpu and sim have the same bits, with one stream and with two, whatever the delays") {
  if (!plugins_built()) return;
  check_same(reference(), train({"run.streams=2"}), "cpu, two streams");
  check_same(reference(), train(sim(1, 1)), "sim, one stream");
  for (int seed : {2, 3, 4})
    check_same(reference(), train(sim(2, seed)), "sim, two streams, seed " + std::to_string(seed));
}

TEST_CASE("one thread, two and three have the same bits") {
  if (!plugins_built()) return;
  const auto* team = core::parallel();
  const int64_t before = team->num_threads(team->self);
  for (int threads : {1, 2, 3}) {
    core::set_num_threads(threads);
    check_same(reference(), train({}), std::to_string(threads) + " threads");
  }
  core::set_num_threads(before);
}

TEST_CASE("an MLP of another compiler in the slot has the bits of gestalt.mlp") {
  if (!plugins_built()) return;
  const std::string folder = clang_mlp_folder();
  if (folder.empty()) return;
  const Sets acme = {"plugins.search=[\"" + folder + "\"]", use_also("acme.mlp"), "model.slots={mlp = \"acme.mlp\"}"};
  {
    TrainingRun run(acme);
    const std::string tree = run.session().tree().text();
    CHECK(tree.find("acme.mlp") != std::string::npos);
    CHECK(tree.find("gestalt.mlp") == std::string::npos);
  }
  check_same(reference(), train(acme), "cpu");
  Sets on_sim = sim(2, 5);
  on_sim.insert(on_sim.end(), acme.begin(), acme.end());
  check_same(reference(), train(on_sim), "sim, two streams");
}

TEST_CASE("node by node with finite checks has the same bits") {
  if (!plugins_built()) return;
  const Result six = train({}, 6);
  check_same(six, train({"run.debug=eager"}, 6), "cpu");
  Sets on_sim = sim(2, 6);
  on_sim.push_back("run.debug=eager");
  check_same(six, train(on_sim, 6), "sim, two streams");
}

TEST_CASE("a captured and replayed step with a changing learning rate has the bits of one that is issued") {
  if (!plugins_built()) return;
  const Result six = train({}, 6);
  CHECK(six.steps[0].rate != six.steps[1].rate);
  CHECK(six.steps[4].rate != six.steps[5].rate);
  for (int streams : {1, 2}) {
    for (int seed : {7, 8}) {
      Sets captured = sim(streams, seed);
      captured.push_back("run.capture=true");
      check_same(six, train(captured, 6), std::to_string(streams) + " streams, seed " + std::to_string(seed));
    }
  }
}

TEST_CASE("a device that cannot capture says so") {
  if (!plugins_built()) return;
  const core::Error e = thrown_by([] { TrainingRun run({"run.capture=true"}); });
  CHECK(e.code() == GESTALT_CONFIG_ERROR);
  CHECK(e.message() == "[run.capture] the step cannot be captured: the device cannot capture");
}

TEST_CASE("recomputation changes no bit and takes a smaller arena") {
  if (!plugins_built()) return;
  auto arena = [](const Sets& sets) {
    TrainingRun run(sets);
    return run.executable().plan().arena_bytes[0];
  };
  const Result five = train({}, 5);
  const uint64_t plain = arena({"model.dropout=0.1"});
  const std::string paths = "model.recompute.paths=[\"model.layers.*\"]";
  const std::string norm = "model.recompute.ops=[\"norm\"]", activation = "model.recompute.ops=[\"activation\"]",
                    attention = "model.recompute.ops=[\"attention\"]",
                    all = "model.recompute.ops=[\"norm\", \"activation\", \"attention\", \"dropout\", \"position\"]";
  for (const Sets& sets : {Sets{paths}, Sets{norm}, Sets{activation}, Sets{attention}, Sets{all}, Sets{paths, all}}) {
    check_same(five, train(sets, 5), fmt::format("{}", fmt::join(sets, " ")));
    Sets same_model = sets;
    same_model.push_back("model.dropout=0.1");
    INFO(fmt::format("{}", fmt::join(sets, " ")));
    const uint64_t bytes = arena(same_model);
    CHECK(bytes < plain);
    UNSCOPED_INFO("arena " << bytes << " of " << plain << " bytes");
  }
  Sets on_sim = sim(2, 9);
  on_sim.insert(on_sim.end(), {paths, all});
  check_same(five, train(on_sim, 5), "paths and ops on sim, two streams");
}

TEST_CASE("recomputation of each class of ops changes no bit of a model with every kind of them") {
  if (!plugins_built()) return;
  Sets model = {"model.rope_kind=yarn", "model.rope_factor=4", "model.rope_original_len=8", "model.rope_fraction=0.5",
                "model.qk_norm=head", "model.norm_placement=both", "model.norm_offset=1", "model.attention_softcap=20",
                "model.logit_softcap=15", "model.attention_windows=[12, 0]", "model.activation=geglu"};
  const Result five = train(model, 5);
  model.emplace_back();
  for (const char* group : {"norm", "activation", "attention", "dropout", "position"}) {
    model.back() = fmt::format("model.recompute.ops=[\"{}\"]", group);
    check_same(five, train(model, 5), group);
  }
  for (const char* path : {"model.layers.0", "model.layers.*.attention", "model.layers.*.attention.positions",
                           "model.layers.*.mlp", "model.*"}) {
    model.back() = fmt::format("model.recompute.paths=[\"{}\"]", path);
    check_same(five, train(model, 5), path);
  }
}

}  // namespace gestalt::test
