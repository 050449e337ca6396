// A save with one system call gone wrong, for every system call of the save: the process dies there, or the call fails
// with ENOSPC, EIO, EDQUOT, EINTR or EMFILE. The trainer must come to its end unless it was killed, with the save after
// the disturbed one committed, and the newest checkpoint must be whole and no older than what was acknowledged.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>

#include "core/base/error.h"
#include "tests/reliability/checkpoints/faults.h"

namespace gestalt::test {

namespace {

namespace fs = std::filesystem;

constexpr const char* kCalls =
    "openat,read,write,pread64,pwrite64,fsync,fdatasync,rename,renameat,renameat2,mkdir,unlink,unlinkat,rmdir,ftruncate,close,"
    "lseek,fstat,newfstatat,getdents64,fcntl,flock";
constexpr const char* kActions[] = {"signal=SIGKILL", "error=ENOSPC", "error=EIO", "error=EDQUOT", "error=EINTR", "error=EMFILE"};

// First and one past the last call of each name inside the marked save, counted from 1 from the program's start.
std::map<std::string, std::pair<int64_t, int64_t>> calls_of_save(const Options& o, const fs::path& log) {
  Child traced({"strace", "-f", "-qq", "-o", log.native(), "-e", std::string("trace=access,") + kCalls}, arguments_of("train", o));
  if (traced.wait().status != 0) core::fail(GESTALT_INTERNAL, "the traced run failed; is tracing allowed here?");
  std::map<std::string, int64_t> seen;
  std::map<std::string, std::pair<int64_t, int64_t>> ranges;
  bool inside = false;
  std::ifstream in(log);
  for (std::string line; std::getline(in, line);) {
    const size_t begin = line.find_first_not_of(" 0123456789"), end = line.find('(');
    if (begin == std::string::npos || end == std::string::npos || end < begin) continue;
    const std::string name = line.substr(begin, end - begin);
    if (line.find("/mark-") != std::string::npos) inside = line.find("/mark-begin") != std::string::npos;
    const int64_t index = ++seen[name];
    if (!inside || name == "access") continue;
    auto [it, is_new] = ranges.try_emplace(name, index, index + 1);
    it->second.second = index + 1;
  }
  return ranges;
}

void copy_fresh(const fs::path& from, const fs::path& to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

}  // namespace

int run_syscalls(const Options& given) {
  Options o = given;
  o.marks = true;
  o.steps = 2;
  Plugins plugins(o.component);
  const fs::path work = o.folder, base = work / "base";
  Options first = o;
  first.folder = base;
  first.marks = false;
  first.steps = 1;
  Child maker({}, arguments_of("train", first));
  if (maker.wait().status != 0) core::fail(GESTALT_INTERNAL, "no first checkpoint");
  o.folder = work / "run";
  copy_fresh(base, o.folder);
  const auto ranges = calls_of_save(o, work / "trace.log");

  int64_t points = 0, runs = 0, failed_saves = 0, killed = 0, turn = 0;
  for (const auto& [name, range] : ranges) {
    for (int64_t k = range.first; k < range.second; ++k) {
      if (turn++ % o.stride != o.first) continue;
      ++points;
      for (const char* action : kActions) {
        const std::string what = fmt::format("{} number {}, {}", name, k, action);
        copy_fresh(base, o.folder);
        Child traced({"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + name, "-e", fmt::format("inject={}:{}:when={}", name, action, k)},
                     arguments_of("train", o));
        const Ended ended = traced.wait();
        ++runs;
        int64_t acknowledged = 1;
        for (const int64_t step : ended.acknowledged()) acknowledged = std::max(acknowledged, step);
        const int64_t newest = check_newest(plugins.registry(), o);
        if (newest < acknowledged) core::fail(GESTALT_DATA_ERROR, "{}: step {} was acknowledged, the newest is {}", what, acknowledged, newest);
        const bool was_killed = std::string(action).find("SIGKILL") != std::string::npos;
        if (was_killed) {
          ++killed;
          if (ended.output.find("trained") != std::string::npos) core::fail(GESTALT_INTERNAL, "{}: nobody was killed", what);
          Options after = o;
          after.marks = false;
          after.steps = 1;
          Child next({}, arguments_of("train", after));
          if (next.wait().acknowledged() != std::vector<int64_t>{newest + 1})
            core::fail(GESTALT_DATA_ERROR, "{}: the training after it cannot save", what);
        } else {
          if (ended.status != 0 || ended.output.find("trained") == std::string::npos)
            core::fail(GESTALT_DATA_ERROR, "{}: the training stopped, status {}:\n{}", what, ended.status, ended.output);
          if (acknowledged != 3) core::fail(GESTALT_DATA_ERROR, "{}: the save after it failed:\n{}", what, ended.output);
          if (ended.output.find("failed 2: ") != std::string::npos) ++failed_saves;
        }
        for (const auto& entry : fs::directory_iterator(o.folder))
          // What a failing unlink, rmdir or listing leaves is removed by the next start.
          if (entry.path().filename().native().find(".tmp-") != std::string::npos && !was_killed &&
              name.find("unlink") == std::string::npos && name != "openat" && name != "getdents64" && name != "newfstatat" && name != "close" && name != "fcntl" && name != "rmdir" && name != "fstat")
            core::fail(GESTALT_DATA_ERROR, "{}: the attempt '{}' is left", what, entry.path().native());
      }
    }
  }
  std::printf("%lld system calls of one save, %lld runs: %lld killed, %lld saves failed cleanly, no acknowledged checkpoint lost\n",
              static_cast<long long>(points), static_cast<long long>(runs), static_cast<long long>(killed), static_cast<long long>(failed_saves));
  return points > 0 ? 0 : 1;
}

}  // namespace gestalt::test
