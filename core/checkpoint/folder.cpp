#include "core/checkpoint/folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>

#include <spdlog/spdlog.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/checkpoint/failpoint.h"
#include "gestalt/abi/base.h"

namespace gestalt::core {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "step-";
constexpr const char* kAttemptMark = ".tmp-";
constexpr const char* kTrash = ".trash-";
constexpr const char* kAside = "aside-";
constexpr int kDigits = 8;
constexpr auto kSaverWait = std::chrono::seconds(120);

void remove_quietly(const fs::path& path) {
  std::error_code ec;
  fs::remove_all(path, ec);
  if (ec) spdlog::warn("cannot remove '{}': {}", path.native(), ec.message());
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

struct Owner {
  int64_t pid = 0;
  std::string host, attempt;
};

Owner read_owner(int descriptor) {
  char text[512] = {};
  const ssize_t n = ::pread(descriptor, text, sizeof(text) - 1, 0);
  Owner owner;
  for (const std::string& line : split(std::string_view(text, n > 0 ? static_cast<size_t>(n) : 0), '\n')) {
    const size_t equal = line.find('=');
    const std::string key = line.substr(0, equal), value = equal == std::string::npos ? "" : line.substr(equal + 1);
    if (key == "pid") std::from_chars(value.data(), value.data() + value.size(), owner.pid);
    if (key == "host") owner.host = value;
    if (key == "attempt") owner.attempt = value;
  }
  return owner;
}

}  // namespace

std::string step_name(int64_t step) { return fmt::format("{}{:0{}}", kPrefix, step, kDigits); }

std::optional<int64_t> step_of(const std::string& name) {
  if (name.rfind(kPrefix, 0) != 0 || name.size() < kPrefix.size() + kDigits) return std::nullopt;
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc() || at != end || step < 0 || step_name(step) != name) return std::nullopt;
  return step;
}

std::vector<Committed> committed(const fs::path& folder) {
  std::vector<Committed> list;
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
    if (const auto step = step_of(it->path().filename().native())) list.push_back({*step, it->path()});
  if (ec && ec != std::errc::no_such_file_or_directory)
    fail(GESTALT_IO_ERROR, "[checkpoint] cannot list '{}': {}", folder.native(), ec.message());
  std::sort(list.begin(), list.end(), [](const Committed& a, const Committed& b) { return a.step < b.step; });
  return list;
}

std::string commit_text(const std::string& manifest_sha256) { return "gestalt commit 1\nmanifest " + manifest_sha256 + "\n"; }

void remove_leftovers(const fs::path& folder) {
  std::vector<fs::path> rubbish;
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
    const std::string name = it->path().filename().native();
    if (name.rfind(kTrash, 0) == 0 || (name.rfind(kPrefix, 0) == 0 && name.find(kAttemptMark) != std::string::npos) ||
        name.rfind("latest.", 0) == 0)
      rubbish.push_back(it->path());
  }
  for (const fs::path& path : rubbish) remove_quietly(path);
}

int64_t set_aside_after(const fs::path& folder, int64_t step, const std::string& attempt) {
  int64_t num = 0;
  for (const Committed& c : committed(folder)) {
    if (c.step <= step) continue;
    const fs::path to = folder / (kAside + attempt + "-" + c.path.filename().native());
    std::error_code ec;
    fs::rename(c.path, to, ec);
    if (ec) fail(GESTALT_IO_ERROR, "[checkpoint] cannot rename '{}': {}", c.path.native(), ec.message());
    ++num;
  }
  if (num > 0) sync_folder(folder);
  return num;
}

void retire_old(const fs::path& folder, int64_t keep, int64_t just, const std::string& attempt) {
  std::vector<Committed> all = committed(folder);
  std::error_code ec;
  std::erase_if(all, [&](const Committed& c) { return c.step == just || fs::exists(c.path / kKeepFile, ec); });
  for (size_t i = 0; i < all.size() && static_cast<int64_t>(all.size() - i) > keep - 1; ++i) {
    // Renamed first: a half-deleted folder never looks like a checkpoint.
    const fs::path trash = folder / (kTrash + attempt + "-" + all[i].path.filename().native());
    fs::rename(all[i].path, trash, ec);
    if (ec) {
      spdlog::warn("cannot retire '{}': {}", all[i].path.native(), ec.message());
      continue;
    }
    failpoint("ckpt.trash_renamed");
    remove_quietly(trash);
  }
}

FolderLock::FolderLock(const fs::path& folder) : file_(folder / "LOCK") {
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) fail(GESTALT_IO_ERROR, "[checkpoint] cannot make folder '{}': {}", folder.native(), ec.message());
  // The names of new folders survive a power cut too.
  sync_folder(fs::absolute(folder).parent_path());
  sync_folder(fs::absolute(folder).parent_path().parent_path());
  const std::string host = host_name();
  const auto begin = std::chrono::steady_clock::now();
  bool told = false;
  while (true) {
    descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (descriptor_ < 0) fail(GESTALT_IO_ERROR, "[checkpoint] cannot open '{}': {}", file_.native(), std::strerror(errno));
    const bool held = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    const Owner owner = read_owner(descriptor_);
    struct stat mine {}, there {};
    const bool same = ::fstat(descriptor_, &mine) == 0 && ::stat(file_.c_str(), &there) == 0 && mine.st_ino == there.st_ino;
    if (held && same && (owner.pid == 0 || owner.host == host)) {
      if (owner.pid != 0) spdlog::warn("took over the lock of process {}, which ended without giving it back", owner.pid);
      break;
    }
    ::close(descriptor_);
    descriptor_ = -1;
    if (held && !same) continue;  // the owner removed the file between our two calls
    const bool dead = owner.host == host && owner.pid > 0 && ::kill(static_cast<pid_t>(owner.pid), 0) != 0 && errno == ESRCH;
    const auto waited = std::chrono::steady_clock::now() - begin;
    // The owner wrote nothing yet, or is dead and its saver finishes what it was given.
    if (!held && ((owner.pid == 0 && waited < std::chrono::seconds(2)) || (dead && waited < kSaverWait))) {
      if (dead && !told) spdlog::info("waiting for the saver of process {}, which has ended", owner.pid);
      told = dead;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    fail(GESTALT_IO_ERROR, "[checkpoint] '{}' is in use by process {} on host '{}' (attempt {}); two trainings cannot share a "
         "folder: set run.output{}", folder.native(), owner.pid, owner.host, owner.attempt,
         held ? ", or remove the file LOCK if that process has ended" : "");
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  attempt_ = fmt::format("{:x}-{}", std::chrono::duration_cast<std::chrono::milliseconds>(now).count(), ::getpid());
  const std::string text = fmt::format("pid={}\nhost={}\nattempt={}\n", ::getpid(), host, attempt_);
  if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    const int error = errno;
    ::close(descriptor_);
    fail(GESTALT_IO_ERROR, "[checkpoint] cannot write '{}': {}", file_.native(), std::strerror(error));
  }
}

FolderLock::~FolderLock() {
  ::unlink(file_.c_str());
  ::close(descriptor_);
}

}  // namespace gestalt::core
