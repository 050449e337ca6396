#include "support/indexed/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "gestalt/error.hpp"

namespace gestalt::support::indexed {

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  const int file = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    throw Error(errno == ENOENT ? GESTALT_NOT_FOUND : GESTALT_IO_ERROR,
                fmt::format("[{}] cannot be opened: {}", path_, std::strerror(errno)));
  struct stat info {};
  const bool regular = fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  size_ = regular ? static_cast<uint64_t>(info.st_size) : 0;
  void* data = size_ ? mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0) : nullptr;
  const int error = errno;
  close(file);
  if (!regular) throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] is not a regular file", path_));
  if (data == MAP_FAILED)
    throw Error(GESTALT_IO_ERROR,
                fmt::format("[{}] {} bytes cannot be mapped: {}", path_, size_, std::strerror(error)));
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace gestalt::support::indexed
