// Files: reading through a held descriptor, and replacing a file so that a crash leaves the old or the new one whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gestalt::support {

// A regular file, open for reading. NOT_FOUND when absent, DATA_ERROR when not a regular file, else IO_ERROR.
class ReadFile {
 public:
  explicit ReadFile(std::string path);
  ReadFile(ReadFile&& other) noexcept;
  ReadFile& operator=(ReadFile&& other) noexcept;
  ReadFile(const ReadFile&) = delete;
  ~ReadFile();

  const std::string& path() const noexcept { return path_; }
  uint64_t size() const noexcept { return size_; }  // when it was opened
  // Reads exactly `bytes` from `offset`; any thread. A file that shrank meanwhile is an IO_ERROR.
  void read(uint64_t offset, void* out, uint64_t bytes) const;
  std::string read_all() const;

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

// Writes beside `path`; commit syncs, renames over `path` and syncs the folder. Without commit nothing remains.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(const void* data, uint64_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();

 private:
  std::string path_, temporary_;
  int descriptor_ = -1;
  uint64_t unsynced_ = 0;
};

// Syncs the folder that holds `path`, so that a rename or a new name in it survives a power cut.
void sync_folder_of(const std::string& path);

}  // namespace gestalt::support
