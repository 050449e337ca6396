#include "core/plugin/confined_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace gestalt::core {

namespace {

[[noreturn]] void fail_errno(int error, std::string_view what, std::string_view path) {
  fail(error == ENOENT || error == ENOTDIR ? GESTALT_NOT_FOUND : GESTALT_IO_ERROR, "{} '{}': {}", what, path,
       std::strerror(error));
}

const char* type_name(mode_t mode) {
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "a regular file";
}

// One step down. O_PATH first: it neither blocks on a FIFO nor touches a device, and a link gives itself.
Fd step_into(int folder, const std::string& name, std::string_view path, bool last) {
  Fd fd(::openat(folder, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() < 0) fail_errno(errno, "cannot open", path);
  const mode_t mode = fd.status().st_mode;
  if (S_ISLNK(mode)) fail(GESTALT_DATA_ERROR, "'{}': '{}' is a symbolic link; links are not followed here", path, name);
  if (last ? !S_ISREG(mode) : !S_ISDIR(mode))
    fail(GESTALT_DATA_ERROR, "'{}': '{}' is {}, expected {}", path, name, type_name(mode),
         last ? "a regular file" : "a folder");
  return fd;
}

// A descriptor that reads, of the very file that an O_PATH descriptor stands for.
Fd reopen(const Fd& path_only, std::string_view path) {
  const std::string proc = fmt::format("/proc/self/fd/{}", path_only.get());
  Fd fd(::open(proc.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (fd.get() < 0) fail_errno(errno, "cannot read", path);
  return fd;
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

struct stat Fd::status() const {
  struct stat s;
  if (::fstat(fd_, &s) != 0) fail(GESTALT_IO_ERROR, "fstat of descriptor {}: {}", fd_, std::strerror(errno));
  return s;
}

Fd open_folder(const std::filesystem::path& folder) {
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) fail_errno(errno, "cannot open folder", folder.native());
  return fd;
}

Fd open_beneath(const Fd& folder, std::string_view relative) {
  if (relative.empty() || relative.size() >= 4096)
    fail(GESTALT_DATA_ERROR, "path of {} bytes, expected 1 to 4095", relative.size());
  if (relative.find('\0') != std::string_view::npos) fail(GESTALT_DATA_ERROR, "path holds a NUL byte");
  if (relative.front() == '/')
    fail(GESTALT_DATA_ERROR, "'{}': absolute path, expected one inside the folder", relative);
  Fd at;
  for (size_t begin = 0; begin <= relative.size();) {
    const size_t end = std::min(relative.find('/', begin), relative.size());
    const std::string name(relative.substr(begin, end - begin));
    if (name.empty() || name == "." || name == "..")
      fail(GESTALT_DATA_ERROR, "'{}': component '{}' is not allowed, the path must stay inside the folder", relative,
           name);
    at = step_into(begin == 0 ? folder.get() : at.get(), name, relative, end == relative.size());
    begin = end + 1;
  }
  return reopen(at, relative);
}

Fd open_regular(const std::filesystem::path& path) {
  Fd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (fd.get() < 0) fail_errno(errno, "cannot open", path.native());
  const mode_t mode = fd.status().st_mode;
  if (!S_ISREG(mode)) fail(GESTALT_DATA_ERROR, "'{}' is {}, expected a regular file", path.native(), type_name(mode));
  return reopen(fd, path.native());
}

std::string read_whole(const Fd& file, uint64_t max_bytes) {
  const uint64_t size = static_cast<uint64_t>(file.status().st_size);
  if (size > max_bytes) fail(GESTALT_DATA_ERROR, "{} bytes, expected at most {}", size, max_bytes);
  std::string bytes(size, '\0');
  uint64_t done = 0;
  while (done < size) {
    const ssize_t n = ::pread(file.get(), bytes.data() + done, size - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(GESTALT_IO_ERROR, "read at byte {}: {}", done, std::strerror(errno));
    if (n == 0) fail(GESTALT_DATA_ERROR, "shrank from {} to {} bytes while being read", size, done);
    done += static_cast<uint64_t>(n);
  }
  return bytes;
}

}  // namespace gestalt::core
