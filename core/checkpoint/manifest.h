// manifest.json of a checkpoint: which files it has, which logical tensors, and where each piece of a tensor lies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gestalt::core {

// Where a training stands beside its tensors. Random numbers are a function of seed and step, the data's order of the
// number of samples, so this is all there is.
struct TrainingState {
  int64_t step = 0;         // updates done
  int64_t samples = 0;      // samples consumed
  std::string data_digest;  // of the train split; empty without data
  std::string tokenizer;    // fingerprint, hex; empty without a tokenizer
  int64_t loss_scale = 0;   // of an f16 run: a power of two; else 0
  int64_t good_steps = 0;   // since the loss scale changed
};

struct StoredFile {
  std::string name;
  uint64_t bytes = 0;
  std::string sha256;
};

// A box of a logical tensor, in one shard file under the tensor's name.
struct StoredPiece {
  uint64_t file = 0;  // index into CheckpointManifest::files
  std::vector<int64_t> offset, shape;
  std::string digest;  // XXH3-128 of its elements in C order
};

struct StoredTensor {
  std::string name;
  uint32_t dtype = 0;
  std::vector<int64_t> shape, parts;
  std::string digest;  // XXH3-128 of all elements in C order
  std::vector<StoredPiece> pieces;
};

struct CheckpointManifest {
  TrainingState state;
  int64_t previous = -1;  // step of the checkpoint before; -1: none
  uint64_t seed = 0;
  std::string attempt, component, mesh;
  std::string digest;  // state_digest
  std::vector<StoredFile> files;
  std::vector<StoredTensor> tensors;  // by name
  const StoredTensor* find(std::string_view name) const;
};

// XXH3-128 over step, samples and each tensor's name, type, shape and digest: equal exactly for equal training states,
// however they are cut into files.
std::string state_digest(const CheckpointManifest& manifest);

// Every logical tensor is covered exactly: pieces inside it, none overlapping, nothing left out. DATA_ERROR names the
// tensor.
void check_coverage(const CheckpointManifest& manifest);

std::string to_json(const CheckpointManifest& manifest);
// Checks format, limits, names, coverage and the state digest. `origin` starts every message.
CheckpointManifest parse_checkpoint_manifest(std::string_view text, const std::string& origin);

}  // namespace gestalt::core
