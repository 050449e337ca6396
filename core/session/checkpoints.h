#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/checkpoint/folder.h"
#include "core/checkpoint/reader.h"
#include "core/checkpoint/saver.h"
#include "core/session/parameter_store.h"
#include "core/session/run.h"

namespace gestalt::core {

// What a checkpoint holds of a model: parameters under their paths, master weights under "master.PATH", optimizer state
// under "optimizer.NAME.PATH".
struct ModelState {
  ParameterStore& store;
  const ModelTree& tree;
  std::vector<gestalt_optimizer_state> states;  // empty: no training
  std::string mesh;                             // Mesh::text
};

// The checkpoint that `resume` ("auto" or a folder, of a checkpoint or of a run) means, checked; NULL when "auto" finds
// none. allow_older: a damaged one is said and the one before is taken.
std::unique_ptr<CheckpointReader> open_checkpoint(const Run& run, const std::string& resume, bool allow_older);

// Every tensor of the model must be there with its shape; tensors that the model does not have are an error that lists
// them. training: master weights and optimizer state too. All are read before the first is written.
void load_state(CheckpointReader& reader, const ModelState& model, bool training);

// The digest of a training as it stands, as a manifest has it.
std::string digest_of(const ModelState& model, const TrainingState& state);

// Settings and plugins that differ between a checkpoint and the run, one a line.
std::vector<std::string> resume_differences(const Run& run, const std::filesystem::path& checkpoint);

// The saves of a training: one process a folder, one save in flight.
class Checkpoints {
 public:
  // Takes the folder's lock: from then on its checkpoints are what they are.
  Checkpoints(const Run& run, std::function<void(const std::string&)> print);
  ~Checkpoints();

  // Sets later checkpoints than `from_step` aside (-1: all). saver_command: the program that serves as saver process;
  // empty: saves happen in this process.
  void start(const std::string& saver_command, int64_t from_step);

  // Makes the staging memory, so that the first save is as fast as every other.
  void prepare(const ModelState& model);
  // Takes a snapshot and hands it to the saver, after the save before is done; returns where it will be. Changes nothing
  // in the training. A save that fails is said; IO_ERROR only after max_failed_saves in a row.
  std::filesystem::path save(const ModelState& model, const TrainingState& state);
  // Says what came of the save in flight. wait: until it is done.
  void collect(bool wait);
  // collect(true), and IO_ERROR when the last save failed.
  void finish();

 private:
  SaveJob snapshot(const ModelState& model, const TrainingState& state);
  void count_failure(int64_t step, const std::string& why);

  const Run& run_;
  std::function<void(const std::string&)> print_;
  Instance plugin_;
  FolderLock lock_;
  SaveSettings settings_;
  std::unique_ptr<Saver> saver_;
  int64_t failed_ = 0, max_failed_ = 3;
  std::string last_error_;
};

}  // namespace gestalt::core
