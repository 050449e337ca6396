#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/checkpoint/shard.h"

namespace gestalt::core {

struct Problem {
  std::string file, tensor, reason;  // file or tensor may be empty
};

// The manifest of a checkpoint folder once COMMIT vouches for it and the step fits the folder's name. DATA_ERROR with
// file and reason; NOT_FOUND when there is no such folder.
CheckpointManifest read_checkpoint_manifest(const std::filesystem::path& folder);

// The state digest of a checkpoint; empty when its manifest cannot be read.
std::string stored_digest(const std::filesystem::path& folder);

// Size and SHA-256 of every file.
std::vector<Problem> check_files(const std::filesystem::path& folder, const CheckpointManifest& manifest);

// The component that wrote a checkpoint; `config` is its section, or NULL.
Instance open_checkpoint_plugin(const Registry& registry, const std::string& name, const ConfigNode* config);

// A checkpoint whose files are all as they were written.
class CheckpointReader {
 public:
  // Throws DATA_ERROR naming the first damaged file and, where one can be told, tensor.
  CheckpointReader(const Registry& registry, std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const CheckpointManifest& manifest() const { return manifest_; }
  // All elements, put together from the pieces and compared with their digests.
  std::vector<char> read(const StoredTensor& tensor);
  // Every tensor; what is wrong with it.
  std::vector<Problem> check_tensors();

 private:
  friend std::vector<Problem> find_damage(const Registry&, const std::filesystem::path&, const CheckpointManifest&);
  CheckpointReader(const Registry& registry, std::filesystem::path folder, CheckpointManifest manifest);
  const Shard& shard(uint64_t file);

  std::filesystem::path folder_;
  CheckpointManifest manifest_;
  Instance plugin_;
  std::map<uint64_t, Shard> shards_;
};

// What is wrong with a checkpoint, by file and tensor; empty: nothing. A damaged shard is opened only in a child
// process, to name its tensors: damage may crash a format's library. Throws only as read_checkpoint_manifest does.
std::vector<Problem> find_damage(const Registry& registry, const std::filesystem::path& folder, const CheckpointManifest& manifest);
std::string describe(const std::vector<Problem>& problems, size_t most = 10);

}  // namespace gestalt::core
