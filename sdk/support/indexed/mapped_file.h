#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace gestalt::support::indexed {

// A regular file mapped for reading. NOT_FOUND when absent, DATA_ERROR when it is no regular file, else IO_ERROR.
class MappedFile {
 public:
  explicit MappedFile(std::string path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  const std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace gestalt::support::indexed
