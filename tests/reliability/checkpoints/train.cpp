// A trainer that only saves: resumes from the newest checkpoint, and says "ack N" for a committed step, "failed N: WHY"
// for one that is not.
#include <unistd.h>

#include <cstdio>

#include "core/base/error.h"
#include "core/checkpoint/saver_process.h"
#include "tests/reliability/checkpoints/faults.h"

namespace gestalt::test {

namespace {

void mark(const char* path, bool wanted) {
  if (wanted && ::access(path, F_OK) == 0) core::fail(GESTALT_INTERNAL, "{} exists", path);
}

void say(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

void report(const std::optional<core::SaveOutcome>& outcome) {
  if (!outcome) return;
  if (outcome->error.empty())
    say(fmt::format("ack {}\n", outcome->step));
  else
    say(fmt::format("failed {}: {}\n", outcome->step, outcome->error.substr(0, outcome->error.find('\n'))));
}

}  // namespace

int run_train(const Options& o) {
  Plugins plugins(o.component);
  const core::Instance plugin = core::open_checkpoint_plugin(plugins.registry(), o.component, nullptr);
  const core::FolderLock lock(o.folder);
  const std::vector<core::Committed> all = core::committed(o.folder);
  const int64_t from = all.empty() ? 0 : all.back().step;
  core::remove_leftovers(o.folder);
  const core::SaveSettings settings{o.folder, lock.attempt(), 2, o.writers};
  const std::string command = std::string(GESTALT_BUILD_DIR) + "/bin/gestalt";
  const std::unique_ptr<core::Saver> saver =
      o.process ? core::make_process_saver(command, plugins.registry(), plugin, nullptr, settings, lock.descriptor())
                : core::make_inline_saver(plugin, settings);
  for (int64_t step = from + 1; step <= from + o.steps; ++step) {
    report(saver->outcome(true));
    mark("/mark-begin", o.marks && step == from + 1);
    core::SaveJob job{{step, 4 * step, "", ""}, 7, "", {{"run.toml", "[run]\nname = \"faults\"\n"}}, {}};
    job.tensors = state_at(step, o.bytes, saver->staging(room_for(o.bytes)));
    saver->submit(std::move(job));
    mark("/mark-end", o.marks && step == from + 1);
  }
  report(saver->outcome(true));
  say("trained\n");
  return 0;
}

}  // namespace gestalt::test
