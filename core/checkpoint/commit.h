// The commit protocol. One save goes through these steps, each made durable before the next:
//   a folder step-N.tmp-ATTEMPT; shard files with their digests; the texts; manifest.json once the pieces are known to
//   cover every tensor exactly; COMMIT with the manifest's SHA-256; the folder; the rename to step-N, which commits; the
//   parent. Then the hint `latest`, and retention. A failure before the rename removes the attempt and changes nothing.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/checkpoint/shard.h"

namespace gestalt::core {

struct SaveSettings {
  std::filesystem::path folder;  // "OUTPUT/checkpoints"
  std::string attempt;           // of the folder's lock
  int64_t keep = 2, writers = 1;
};

struct SaveJob {
  TrainingState state;
  uint64_t seed = 0;
  std::string mesh;
  std::vector<std::pair<std::string, std::string>> texts;  // name and content of the files beside the shards
  std::vector<HostTensor> tensors;
  Verify verify = Verify::kFull;
};

struct Saved {
  std::filesystem::path path;
  std::string digest;  // of the state
};

// Writes shares[i] as shard i into the folder.
using WriteShards = std::function<std::vector<ShardReport>(const std::filesystem::path& folder,
                                                           const std::vector<std::vector<Slab>>& shares)>;

// Throws when nothing was committed. A step that is there already with the same state is left as it is.
Saved commit_checkpoint(const SaveSettings& settings, const std::string& component, const SaveJob& job,
                        const WriteShards& write);

}  // namespace gestalt::core
