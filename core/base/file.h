#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace gestalt::core {

// An open regular file (a pipe or a device is refused: it could block or never end). Errors name path and reason:
// NOT_FOUND when it is absent, IO_ERROR otherwise.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  uint64_t size() const { return size_; }
  // Bytes read, 0 at the end.
  size_t read(void* data, size_t bytes);

 private:
  std::filesystem::path path_;
  int descriptor_;
  uint64_t size_;
};

// The whole file; more than max_bytes is a DATA_ERROR.
std::string read_file(const std::filesystem::path& path, uint64_t max_bytes);

// Readers see the old file or the new one, also after a power cut: written beside, synchronised, renamed, folder
// synchronised.
void write_file_atomic(const std::filesystem::path& path, std::string_view content);

// Makes a rename or a new name in `folder` durable.
void sync_folder(const std::filesystem::path& folder);

}  // namespace gestalt::core
