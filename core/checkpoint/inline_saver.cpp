#include <chrono>

#include "core/base/error.h"
#include "core/base/host.h"
#include "core/checkpoint/saver.h"

namespace gestalt::core {

namespace {

class InlineSaver : public Saver {
 public:
  InlineSaver(const Instance& plugin, SaveSettings settings) : plugin_(plugin), settings_(std::move(settings)) {}

  char* staging(uint64_t bytes) override {
    staging_.resize(bytes);
    return staging_.data();
  }
  void submit(SaveJob job) override {
    outcome_ = run_save(settings_, std::string(view_of(plugin_.component().component->name)), job,
                        write_here(plugin_, job));
  }
  std::optional<SaveOutcome> outcome(bool) override { return std::exchange(outcome_, std::nullopt); }

 private:
  const Instance& plugin_;
  SaveSettings settings_;
  std::vector<char> staging_;
  std::optional<SaveOutcome> outcome_;
};

}  // namespace

std::unique_ptr<Saver> make_inline_saver(const Instance& plugin, SaveSettings settings) {
  return std::make_unique<InlineSaver>(plugin, std::move(settings));
}

WriteShards write_here(const Instance& plugin, const SaveJob& job) {
  return [&plugin, &job](const std::filesystem::path& folder, const std::vector<std::vector<Slab>>& shares) {
    std::vector<ShardReport> reports;
    for (size_t i = 0; i < shares.size(); ++i)
      reports.push_back(write_shard(plugin, folder / shard_name(plugin, i), job.tensors, shares[i], job.verify));
    return reports;
  };
}

SaveOutcome run_save(const SaveSettings& settings, const std::string& component, const SaveJob& job, const WriteShards& write) {
  SaveOutcome outcome;
  outcome.step = job.state.step;
  const auto begin = std::chrono::steady_clock::now();
  try {
    outcome.saved = commit_checkpoint(settings, component, job, write);
  } catch (const std::exception& e) {
    outcome.error = e.what();
    if (outcome.error.empty()) outcome.error = "unknown error";
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

}  // namespace gestalt::core
