// A training that is saved and continued by another session is the one that was never stopped.
#include <fstream>
#include <iterator>

#include "tests/catch_compat.hpp"
#include "tests/integration/training/training_run.h"
#include "tests/thrown_error.h"

namespace gestalt::test {

namespace {

namespace fs = std::filesystem;
using Sets = std::vector<std::string>;

// A fresh output folder for each name.
Sets into(const std::string& name, Sets sets) {
  sets.push_back("run.output=" + (work_folder() / name).native());
  return sets;
}

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void check_resumed(const std::string& name, const Sets& sets) {
  INFO(name);
  std::vector<StepBits> whole_steps;
  Bytes whole;
  fs::path whole_folder;
  {
    TrainingRun run(into(name + "_whole", sets));
    whole_steps = run.steps(8);
    whole = run.all_state();
    whole_folder = run.session().save();
  }
  fs::path half;
  {
    TrainingRun run(into(name + "_parts", sets));
    const std::vector<StepBits> first = run.steps(5);
    CHECK(first == std::vector<StepBits>(whole_steps.begin(), whole_steps.begin() + 5));
    half = run.session().save();
    CHECK(half.filename() == "step-00000005");
    // Saving changes nothing.
    CHECK(run.steps(1)[0] == whole_steps[5]);
  }
  auto rest = [&](TrainingRun& run, const std::string& how) {
    INFO(how);
    CHECK(run.trainer().steps_done() == 5);
    CHECK(run.steps(3) == std::vector<StepBits>(whole_steps.begin() + 5, whole_steps.end()));
    CHECK(differing(whole, run.all_state()) == Sets{});
    const fs::path folder = run.session().save();
    CHECK(content(folder / "shard-00000.safetensors") == content(whole_folder / "shard-00000.safetensors"));
    CHECK(core::read_checkpoint_manifest(folder).digest == core::read_checkpoint_manifest(whole_folder).digest);
    CHECK(content(folder / "shard-00000.safetensors").size() > 1000);
  };
  {
    TrainingRun run(into(name + "_parts", sets), "auto");
    rest(run, "--resume auto");
  }
  {
    TrainingRun run(into(name + "_folder", sets), half.native());
    rest(run, "--resume FOLDER");
  }
  {
    TrainingRun run(into(name + "_target", {}), "", half);
    rest(run, "the checkpoint as the run file");
  }
}

}  // namespace

TEST_CASE("a resumed f32 training is the uninterrupted one, byte for byte") {
  if (!plugins_built()) return;
  check_resumed("f32", {"model.dropout=0.1"});
}

TEST_CASE("a resumed bf16 training with f32 masters is the uninterrupted one, byte for byte") {
  if (!plugins_built()) return;
  check_resumed("bf16", {"run.dtype=bf16", "model.dropout=0.1"});
}

TEST_CASE("a resumed f16 or f64 training, another optimizer and sim are the uninterrupted ones") {
  if (!plugins_built()) return;
  check_resumed("f16", {"run.dtype=f16"});
  check_resumed("f64", {"run.dtype=f64", "model.norm=layer", "model.tied=false"});
  check_resumed("sgd", {"optimizer.type=gestalt.sgd", "optimizer.momentum=0.9", "optimizer.lr=0.1"});
  check_resumed("sim", {"run.device=sim", "run.streams=2", "device.max_delay_us=5", "device.seed=3"});
}

TEST_CASE("the loss scale of an f16 training is kept with the steps since it changed") {
  if (!plugins_built()) return;
  const Sets sets = into("loss_scale", {"run.dtype=f16"});
  {
    TrainingRun run(sets);
    run.steps(1);
    run.trainer().loss_scale().restore(512, 7);
    run.session().save();
    run.session().wait_saved();
  }
  TrainingRun run(sets, "auto");
  CHECK(run.trainer().loss_scale().value() == 512);
  CHECK(run.trainer().loss_scale().good_steps() == 7);
}

TEST_CASE("a checkpoint of another model, of other data or with a damaged file is refused") {
  if (!plugins_built()) return;
  fs::path folder;
  {
    TrainingRun run(into("refused", {}));
    run.steps(1);
    folder = run.session().save();
  }
  const core::Error other = thrown_by([&] { TrainingRun run({"model.ffn=96"}, folder.native()); });
  CHECK(other.code() == GESTALT_DATA_ERROR);
  CHECK(other.message().find("model.layers.0.mlp.up.weight is f32[64, 32], expected f32[96, 32]") != std::string::npos);

  const fs::path text = work_folder() / "other.txt";
  std::ofstream(text) << content(work_folder() / "text.txt") << "one more line\n";
  const core::Error data = thrown_by([&] { TrainingRun run({"data.path=" + text.native()}, folder.native()); });
  CHECK(data.code() == GESTALT_CONFIG_ERROR);
  CHECK(data.message().find("was trained on other data") != std::string::npos);

  const core::Error batch = thrown_by([&] { TrainingRun run({"train.global_batch=2"}, folder.native()); });
  CHECK(batch.code() == GESTALT_CONFIG_ERROR);

  const fs::path shard = folder / "shard-00000.safetensors";
  fs::resize_file(shard, fs::file_size(shard) - 100);
  CHECK(thrown_by([&] { TrainingRun run({}, folder.native()); }).code() == GESTALT_DATA_ERROR);
}

}  // namespace gestalt::test
