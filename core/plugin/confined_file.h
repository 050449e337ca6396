#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace gestalt::core {

// An owned file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  struct stat status() const;

 private:
  int fd_ = -1;
};

// These throw Error: NOT_FOUND, DATA_ERROR (not a plain file, leaves its folder, too large) or IO_ERROR.

Fd open_folder(const std::filesystem::path& folder);

// Opens a regular file for reading by a path relative to an open folder. The path may not be absolute, hold "..", or
// pass through any symbolic link, so it cannot leave the folder even while others rename things in it.
Fd open_beneath(const Fd& folder, std::string_view relative);

// Opens a regular file for reading by any path, links included. Never blocks: a FIFO or a device is refused.
Fd open_regular(const std::filesystem::path& path);

// The whole content of the file behind the descriptor, at most `max_bytes`.
std::string read_whole(const Fd& file, uint64_t max_bytes);

}  // namespace gestalt::core
