#include "support/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gestalt/error.hpp"

namespace gestalt::support {

namespace {

// Linux moves at most about 2 GiB a call; smaller pieces keep a signal's delay short.
constexpr uint64_t kLargestTransfer = uint64_t{256} << 20;
constexpr uint64_t kWriteBehind = uint64_t{8} << 20;

[[noreturn]] void io_failed(const std::string& path, std::string_view doing) {
  const int number = errno;
  throw Error(number == ENOENT ? GESTALT_NOT_FOUND : GESTALT_IO_ERROR,
              "[" + path + "] " + std::string(doing) + " failed: " + std::strerror(number));
}

}  // namespace

ReadFile::ReadFile(std::string path) : path_(std::move(path)) {
  // NONBLOCK: opening a FIFO must not wait for a writer that never comes.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) io_failed(path_, "open for reading");
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0) {
    const int number = errno;
    ::close(descriptor_);
    errno = number;
    io_failed(path_, "stat");
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(descriptor_);
    throw Error(GESTALT_DATA_ERROR, "[" + path_ + "] is not a regular file");
  }
  size_ = static_cast<uint64_t>(info.st_size);
}

ReadFile::ReadFile(ReadFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

ReadFile& ReadFile::operator=(ReadFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

ReadFile::~ReadFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ReadFile::read(uint64_t offset, void* out, uint64_t bytes) const {
  auto* at = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor_, at, std::min(bytes, kLargestTransfer), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) io_failed(path_, "read of " + std::to_string(bytes) + " bytes at " + std::to_string(offset));
    if (got == 0) {
      throw Error(GESTALT_IO_ERROR, "[" + path_ + "] ends at byte " + std::to_string(offset) + ", expected " +
                                        std::to_string(bytes) + " more; was it changed while being read?");
    }
    at += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
}

std::string ReadFile::read_all() const {
  std::string text(size_, '\0');
  read(0, text.data(), size_);
  return text;
}

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_(path_ + "." + std::to_string(::getpid()) + ".tmp") {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor_ < 0) io_failed(temporary_, "open for writing");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, uint64_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = ::write(descriptor_, at, std::min(bytes, kLargestTransfer));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) io_failed(temporary_, "write of " + std::to_string(bytes) + " bytes");
    at += done;
    bytes -= static_cast<uint64_t>(done);
    unsynced_ += static_cast<uint64_t>(done);
  }
  // The disk begins while the caller prepares more, so that the sync at the end finds little left.
  if (unsynced_ < kWriteBehind) return;
  ::sync_file_range(descriptor_, 0, 0, SYNC_FILE_RANGE_WRITE);
  unsynced_ = 0;
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) io_failed(temporary_, "fsync");
  // Some file systems report a failed write only at close.
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    const int number = errno;
    ::unlink(temporary_.c_str());
    errno = number;
    io_failed(temporary_, "close");
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int number = errno;
    ::unlink(temporary_.c_str());
    errno = number;
    io_failed(path_, "rename of " + temporary_);
  }
  sync_folder_of(path_);
}

void sync_folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) io_failed(folder, "open");
  const int result = ::fsync(descriptor);
  const int number = errno;
  ::close(descriptor);
  // EINVAL: a file system without syncable folders; there is nothing more to ask of it.
  if (result != 0 && number != EINVAL) {
    errno = number;
    io_failed(folder, "fsync");
  }
}

}  // namespace gestalt::support
