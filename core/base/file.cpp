#include "core/base/file.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/text.h"

namespace gestalt::core {

namespace {

[[noreturn]] void fail_io(const char* what, const std::filesystem::path& path, int error) {
  const bool absent = error == ENOENT || error == ENOTDIR;
  fail(absent ? GESTALT_NOT_FOUND : GESTALT_IO_ERROR, "cannot {} {}: {}", what, escape_controls(path.string()),
       std::generic_category().message(error));
}

// Closes and removes an unfinished file unless it was renamed away.
struct PartFile {
  std::string path;
  int descriptor = -1;
  ~PartFile() {
    if (descriptor >= 0) ::close(descriptor);
    if (!path.empty()) ::unlink(path.c_str());
  }
};

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer before the type is known.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail_io("open", path, errno);
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0) {
    const int error = errno;
    ::close(descriptor_);
    fail_io("inspect", path, error);
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(descriptor_);
    fail(GESTALT_IO_ERROR, "cannot read {}: not a regular file", escape_controls(path.string()));
  }
  size_ = static_cast<uint64_t>(info.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

size_t InputFile::read(void* data, size_t bytes) {
  while (true) {
    const ssize_t n = ::read(descriptor_, data, bytes);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno != EINTR) fail_io("read", path_, errno);
  }
}

std::string read_file(const std::filesystem::path& path, uint64_t max_bytes) {
  InputFile file(path);
  std::string content;
  char chunk[1 << 14];
  while (const size_t n = file.read(chunk, sizeof(chunk))) {
    if (content.size() + n > max_bytes)
      fail(GESTALT_DATA_ERROR, "{} is too large, got {} bytes, expected at most {}", escape_controls(path.string()),
           std::max<uint64_t>(file.size(), content.size() + n), max_bytes);
    content.append(chunk, n);
  }
  return content;
}

void write_file_atomic(const std::filesystem::path& path, std::string_view content) {
  PartFile part;
  std::string name = path.string() + ".XXXXXX";
  part.descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (part.descriptor < 0) fail_io("create", path, errno);
  part.path = name;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(part.descriptor, 0666 & ~mask) != 0) fail_io("set the mode of", path, errno);
  for (size_t done = 0; done < content.size();) {
    const ssize_t n = ::write(part.descriptor, content.data() + done, content.size() - done);
    if (n < 0 && errno != EINTR) fail_io("write", path, errno);
    if (n > 0) done += static_cast<size_t>(n);
  }
  if (::fsync(part.descriptor) != 0) fail_io("synchronise", path, errno);
  const int descriptor = part.descriptor;
  part.descriptor = -1;
  if (::close(descriptor) != 0) fail_io("close", path, errno);
  if (::rename(name.c_str(), path.c_str()) != 0) fail_io("replace", path, errno);
  part.path.clear();
  sync_folder(path.parent_path());
}

void sync_folder(const std::filesystem::path& folder) {
  const std::filesystem::path where = folder.empty() ? std::filesystem::path(".") : folder;
  const int descriptor = ::open(where.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail_io("open folder", where, errno);
  const int result = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  // Some network file systems cannot synchronise a folder and say so with EINVAL.
  if (result != 0 && error != EINVAL) fail_io("synchronise folder", where, error);
}

}  // namespace gestalt::core
