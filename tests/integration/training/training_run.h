#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/session/session.h"

namespace gestalt::test {

// Losses and norms of updates, as bits.
struct StepBits {
  uint64_t loss = 0, norm = 0, rate = 0;
  int64_t skipped = 0;
  bool operator==(const StepBits&) const = default;
};

using Bytes = std::map<std::string, std::vector<char>>;  // by tensor name

// Whether the plugins of this build that a small training needs are there (and `also`); says on the test's output what
// is missing.
bool plugins_built(const std::vector<std::string>& also = {});
// The folder of plugins with acme.mlp, as tests/integration/clang_mlp.sh names it in GESTALT_TEST_CLANG_MLP; empty, and
// said, when nobody does.
std::string clang_mlp_folder();

// "plugins.use=[...]" with the plugins of the base run file and one more.
std::string use_also(const std::string& id);

// A folder of this process, with the text that all runs read. Gone at exit.
const std::filesystem::path& work_folder();

// A small decoder (two layers, width 32, 32 tokens, bytes) in training: model, data and optimizer are open.
class TrainingRun {
 public:
  // sets: as of --set, over the base run file. resume: "none", "auto" or a checkpoint folder. target: a checkpoint
  // folder to run instead of the base run file.
  explicit TrainingRun(const std::vector<std::string>& sets = {}, const std::string& resume = "none",
                       const std::filesystem::path& target = {});
  ~TrainingRun();
  TrainingRun(const TrainingRun&) = delete;

  std::vector<StepBits> steps(int num);
  Bytes weights();
  Bytes gradients();
  Bytes all_state();  // weights, masters and the optimizer's state

  core::Session& session() { return *session_; }
  core::Trainer& trainer() { return session_->trainer(); }
  core::ParameterStore& store() { return session_->store(); }
  core::Device& device() { return session_->machine().device(); }
  const core::Program& program() { return trainer().loss_program().compiled().program(); }
  const core::Executable& executable() { return trainer().loss_program().compiled().executable(); }

 private:
  std::unique_ptr<core::Run> run_;
  std::unique_ptr<core::Session> session_;
};

// The base run file, for commands.
std::filesystem::path run_file();

// Names of tensors whose bytes differ, or that only one side has.
std::vector<std::string> differing(const Bytes& a, const Bytes& b);

}  // namespace gestalt::test
