#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/session/parameter_store.h"
#include "core/session/run.h"

namespace gestalt::core {

// What a checkpoint says beside tensors.
struct TrainingState {
  int64_t step = 0;            // updates done
  int64_t samples = 0;         // samples consumed
  std::string data_digest;     // of the train split; empty without data
  std::string tokenizer;       // fingerprint, hex; empty without a tokenizer
};

// A checkpoint is a folder: run.toml (the resolved configuration), plugins.lock.toml, state.toml, and shard files of
// logical tensors: parameters under their paths, master weights under "master.PATH", optimizer state under
// "optimizer.NAME.PATH". It is written beside under a temporary name and renamed when complete, so a folder without
// ".tmp" in its name is whole. Returns the folder "step-00000100".
std::filesystem::path save_checkpoint(const Run& run, const ParameterStore& store, const ModelTree& tree,
                                      const std::vector<gestalt_optimizer_state>& states, const TrainingState& state);

// Parameters (and masters and optimizer state when the store has them and `training`). Every tensor must be there with
// the shape of the model; tensors that the model does not have are an error that lists them.
TrainingState load_checkpoint(const Run& run, ParameterStore& store, const ModelTree& tree,
                              const std::vector<gestalt_optimizer_state>& states, const std::filesystem::path& folder,
                              bool training);

// The newest complete checkpoint below an output folder; empty if there is none.
std::filesystem::path newest_checkpoint(const std::filesystem::path& output);

}  // namespace gestalt::core
