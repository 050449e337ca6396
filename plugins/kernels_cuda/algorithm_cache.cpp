#include "plugins/kernels_cuda/algorithm_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gestalt::kernels_cuda {

namespace {

std::string default_folder() {
  if (const char* own = std::getenv("GESTALT_CACHE_DIR"); own && *own) return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) return std::string(xdg) + "/gestalt";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/gestalt";
  return {};
}

}  // namespace

AlgorithmCache& AlgorithmCache::of_process() {
  static auto* const cache = new AlgorithmCache(default_folder());
  return *cache;
}

AlgorithmCache::AlgorithmCache(std::string folder) : folder_(std::move(folder)) {
  if (folder_.empty()) return;
  file_ = folder_ + "/matmul_algorithms.txt";
  std::ifstream in(file_);
  for (std::string line; std::getline(in, line);) {
    const size_t tab = line.find('\t');
    // The first line of a key counts: another process may have searched at the same time.
    if (tab != std::string::npos) lines_.emplace(line.substr(0, tab), line.substr(tab + 1));
  }
}

std::optional<std::string> AlgorithmCache::find(const std::string& key) {
  std::lock_guard lock(mutex_);
  const auto it = lines_.find(key);
  if (it == lines_.end()) return std::nullopt;
  return it->second;
}

bool AlgorithmCache::writable() {
  if (folder_.empty()) return false;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  return access(folder_.c_str(), W_OK) == 0;
}

bool AlgorithmCache::store(const std::string& key, const std::string& value) {
  std::lock_guard lock(mutex_);
  lines_.emplace(key, value);
  if (!writable()) return false;
  const int fd = open(file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  const std::string line = key + "\t" + value + "\n";
  const bool written = write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  return close(fd) == 0 && written;
}

}  // namespace gestalt::kernels_cuda
