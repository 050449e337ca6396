// Does saves one at a time: a snapshot is staged in memory, then written while the training goes on.
#pragma once

#include <memory>
#include <optional>

#include "core/checkpoint/commit.h"

namespace gestalt::core {

// What came of one save.
struct SaveOutcome {
  int64_t step = 0;
  Saved saved;        // empty when it failed
  std::string error;  // empty when it is committed
  double seconds = 0;
};

class Saver {
 public:
  virtual ~Saver() = default;
  // Memory for a snapshot, filled before submit and left alone until its outcome has been taken.
  virtual char* staging(uint64_t bytes) = 0;
  // The tensors' data lies in the staging memory.
  virtual void submit(SaveJob job) = 0;
  // Of the save in flight; wait: until there is one. None when nothing is in flight.
  virtual std::optional<SaveOutcome> outcome(bool wait) = 0;
};

// Saves inside submit, in this process. `plugin` outlives the saver.
std::unique_ptr<Saver> make_inline_saver(const Instance& plugin, SaveSettings settings);

// The save itself, with the exceptions turned into an outcome.
SaveOutcome run_save(const SaveSettings& settings, const std::string& component, const SaveJob& job, const WriteShards& write);
// Writes the shares one after the other in this process.
WriteShards write_here(const Instance& plugin, const SaveJob& job);

}  // namespace gestalt::core
