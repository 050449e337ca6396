// The folder "checkpoints" of a run: committed checkpoints, unfinished attempts, the lock.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gestalt::core {

inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr const char* kCommitFile = "COMMIT";
inline constexpr const char* kKeepFile = "KEEP";  // a file of this name inside a checkpoint: retention leaves it alone

struct Committed {
  int64_t step;
  std::filesystem::path path;
};

std::string step_name(int64_t step);  // "step-00000100"
// The step of a name that step_name makes; none for attempts and everything else.
std::optional<int64_t> step_of(const std::string& name);
// By rising step. The rename to such a name is what commits, so the name alone says that a checkpoint was whole.
std::vector<Committed> committed(const std::filesystem::path& folder);

// The text of COMMIT for a manifest: nothing else is accepted.
std::string commit_text(const std::string& manifest_sha256);

// Attempts and rubbish of processes that are gone. Only under the lock.
void remove_leftovers(const std::filesystem::path& folder);
// Moves checkpoints after `step` aside, so that a run that continues from an earlier one never meets another history.
// Returns how many.
int64_t set_aside_after(const std::filesystem::path& folder, int64_t step, const std::string& attempt);
// Keeps the newest `keep`, those marked KEEP, and the one of step `just`. What cannot be removed stays for the next time.
void retire_old(const std::filesystem::path& folder, int64_t keep, int64_t just, const std::string& attempt);

// One training a folder: held from open to destruction by this process and whatever inherits the descriptor. The file
// LOCK names the owner.
class FolderLock {
 public:
  // Waits while a dead process's saver still finishes; a living owner, or one of another host, is refused (IO_ERROR).
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;

  int descriptor() const { return descriptor_; }
  const std::string& attempt() const { return attempt_; }  // unique to this tenure

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
  std::string attempt_;
};

}  // namespace gestalt::core
