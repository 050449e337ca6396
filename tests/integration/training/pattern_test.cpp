// Kinds of layers in one stack.
#include "tests/integration/training/training_run.h"

#include "core/base/text.h"
#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

namespace gestalt::test {

namespace {

using Catch::Contains;

// model.layers.3.mlp.up.weight of layers of one branch is model.layers.1.mlp.up.weight of pairs.
std::string of_pairs(const std::string& path) {
  std::vector<std::string> steps = core::split(path, '.');
  if (steps[1] == "layers") steps[2] = std::to_string(std::stoi(steps[2]) / 2);
  return core::join(steps, ".");
}

}  // namespace

TEST_CASE("layers of attention and of an MLP in turn compute what layers of both compute") {
  if (!plugins_built()) return;
  TrainingRun pairs({"model.activation=swiglu"});
  TrainingRun single({"model.activation=swiglu", "model.pattern=[\"*-\"]", "model.layers=4"});
  for (const core::Parameter* p : single.session().tree().parameters()) {
    const core::Parameter* from = pairs.session().tree().find(of_pairs(p->path));
    REQUIRE(from);
    const std::vector<char> bytes = pairs.store().read(pairs.store().weight(*from));
    single.store().write(single.store().weight(*p), bytes.data(), bytes.size());
  }
  CHECK(pairs.session().tree().num_parameters() == single.session().tree().num_parameters());
  CHECK(single.trainer().accumulate_gradients({0, 1}) == pairs.trainer().accumulate_gradients({0, 1}));
  const Bytes of_single = single.gradients(), wanted = pairs.gradients();
  for (const auto& [path, bytes] : of_single) CHECK(bytes == wanted.at(of_pairs(path)));
}

TEST_CASE("windows by layer are the same by their list and by kinds of layers") {
  if (!plugins_built()) return;
  TrainingRun by_list({"model.attention_windows=[5, 0]"});
  TrainingRun by_kind({"model.pattern=[\"sliding\", \"full\"]", "model.slots.sliding.window=5"});
  TrainingRun none(std::vector<std::string>{});
  const auto losses = by_list.steps(2);
  CHECK(losses == by_kind.steps(2));
  CHECK(losses != none.steps(2));
}

TEST_CASE("a part of one kind of layer is replaced by naming the kind before it") {
  if (!plugins_built()) return;
  TrainingRun run({"model.pattern=[\"sliding\", \"full\"]", "model.slots.\"full/norm\"=gestalt.layer_norm"});
  CHECK(run.session().tree().find("model.layers.1.mlp_norm.bias"));
  CHECK_FALSE(run.session().tree().find("model.layers.0.mlp_norm.bias"));
  CHECK_FALSE(run.session().tree().find("model.final_norm.bias"));
}

TEST_CASE("a kind of layer without a plugin for its branch is refused by name") {
  if (!plugins_built()) return;
  CHECK_THAT(message_of([] { TrainingRun({"model.pattern=[\"acme\"]", "model.slots.acme.mixer=acme_scan"}); }),
             Contains("acme_scan"));
  CHECK_THAT(message_of([] { TrainingRun({"model.pattern=[\"a\"]", "model.slots.b.window=3"}); }),
             Contains("'b' has no effect"));
}

}  // namespace gestalt::test
