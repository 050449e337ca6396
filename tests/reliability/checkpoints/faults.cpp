#include "tests/reliability/checkpoints/faults.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/checkpoint/failpoint.h"

namespace gestalt::test {

namespace fs = std::filesystem;
using core::fail;

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 2; i < argc; ++i) {
    const std::string a = argv[i];
    auto value = [&] {
      if (i + 1 >= argc) fail(GESTALT_USAGE_ERROR, "{} needs a value", a);
      return std::string(argv[++i]);
    };
    if (a == "--folder") o.folder = value();
    else if (a == "--component") o.component = value();
    else if (a == "--steps") o.steps = std::atoll(value().c_str());
    else if (a == "--writers") o.writers = std::atoll(value().c_str());
    else if (a == "--bytes") o.bytes = std::atoll(value().c_str());
    else if (a == "--runs") o.runs = std::atoll(value().c_str());
    else if (a == "--stride") o.stride = std::atoll(value().c_str());
    else if (a == "--first") o.first = std::atoll(value().c_str());
    else if (a == "--seed") o.seed = std::strtoull(value().c_str(), nullptr, 10);
    else if (a == "--process") o.process = true;
    else if (a == "--marks") o.marks = true;
    else fail(GESTALT_USAGE_ERROR, "unknown argument '{}'", a);
  }
  if (o.folder.empty()) fail(GESTALT_USAGE_ERROR, "--folder is missing");
  return o;
}

std::vector<std::string> arguments_of(const std::string& mode, const Options& o) {
  std::vector<std::string> list = {mode, "--folder", o.folder.native(), "--component", o.component, "--steps", std::to_string(o.steps),
                                   "--writers", std::to_string(o.writers), "--bytes", std::to_string(o.bytes)};
  if (o.process) list.push_back("--process");
  if (o.marks) list.push_back("--marks");
  return list;
}

Plugins::Plugins(const std::string& component) {
  registry_.discover({fs::path(GESTALT_BUILD_DIR) / "lib/gestalt/plugins"});
  for (const auto& found : registry_.found())
    if (found.manifest.component("checkpoint/1", component)) registry_.load({found.manifest.id});
}

uint64_t room_for(int64_t bytes) { return static_cast<uint64_t>(bytes) + 4096; }

std::vector<core::HostTensor> state_at(int64_t step, int64_t bytes, char* room) {
  const int64_t rows = std::max<int64_t>((bytes - 3000) / 256, 4);
  std::vector<core::HostTensor> list = {{"model.embedding.weight", GESTALT_F32, {rows, 64}, {}, nullptr},
                                        {"model.layers.0.qkv.weight", GESTALT_BF16, {12, 16}, {4, 4, 4}, nullptr},
                                        {"model.layers.0.norm.weight", GESTALT_F64, {16}, {}, nullptr},
                                        {"optimizer.m.model.scale", GESTALT_F32, {}, {}, nullptr},
                                        {"model.seen", GESTALT_I64, {5, 3, 2}, {}, nullptr},
                                        {"model.mask", GESTALT_BOOL, {33}, {}, nullptr}};
  uint64_t x = 0x9e3779b97f4a7c15u * static_cast<uint64_t>(step + 1);
  for (core::HostTensor& t : list) {
    t.data = room;
    const uint64_t size = core::bytes_of(t.dtype, t.shape);
    for (uint64_t i = 0; i < size; i += 8) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      // Numbers that every reader takes: a NaN's bits may change on the way to a wider type.
      const uint64_t mask = t.dtype == GESTALT_BOOL ? 0x0101010101010101u : t.dtype == GESTALT_BF16 ? 0xbfffbfffbfffbfffu : ~uint64_t{0};
      const uint64_t word = x & mask;
      std::memcpy(room + i, &word, std::min<uint64_t>(8, size - i));
    }
    room += (size + 63) / 64 * 64;
  }
  return list;
}

int64_t check_newest(core::Registry& registry, const Options& o) {
  const std::vector<core::Committed> all = core::committed(o.folder);
  if (all.empty()) return -1;
  core::CheckpointReader reader(registry, all.back().path);
  std::vector<char> room(room_for(reader.manifest().find("model.embedding.weight")->shape[0] * 256 + 3000));
  for (const core::HostTensor& t : state_at(all.back().step, reader.manifest().find("model.embedding.weight")->shape[0] * 256 + 3000, room.data())) {
    const core::StoredTensor* stored = reader.manifest().find(t.name);
    if (!stored) fail(GESTALT_DATA_ERROR, "tensor '{}' is missing", t.name);
    const std::vector<char> value = reader.read(*stored);
    if (value.size() != core::bytes_of(t.dtype, t.shape) || std::memcmp(value.data(), t.data, value.size()) != 0)
      fail(GESTALT_DATA_ERROR, "tensor '{}' of step {} is not what was saved", t.name, all.back().step);
  }
  return all.back().step;
}

std::vector<int64_t> Ended::acknowledged() const {
  std::vector<int64_t> steps;
  for (const std::string& line : core::split(output, '\n'))
    if (line.rfind("ack ", 0) == 0) steps.push_back(std::atoll(line.c_str() + 4));
  return steps;
}

Child::Child(const std::vector<std::string>& before, const std::vector<std::string>& arguments) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(GESTALT_IO_ERROR, "no pipe");
  std::vector<std::string> words = before;
  words.push_back(fs::read_symlink("/proc/self/exe").native());
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(ends[1], 1);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  output_ = ends[0];
}

bool Child::read_some(Ended& out) {
  char chunk[4096];
  const ssize_t n = ::read(output_, chunk, sizeof(chunk));
  if (n > 0) out.output.append(chunk, static_cast<size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

void Child::wait_for_ack(int timeout_ms) {
  const size_t before = so_far_.acknowledged().size();
  pollfd one{output_, POLLIN, 0};
  while (so_far_.acknowledged().size() == before && ::poll(&one, 1, timeout_ms) > 0 && read_some(so_far_)) {
  }
}

Ended Child::wait() {
  while (read_some(so_far_)) {
  }
  ::close(output_);
  ::waitpid(pid_, &so_far_.status, 0);
  return so_far_;
}

}  // namespace gestalt::test

int main(int argc, char** argv) {
  using namespace gestalt;
  const std::string mode = argc > 1 ? argv[1] : "";
  try {
    core::setup_log({});
    if (mode == "failpoints") {
      for (const auto name : core::failpoint_names()) std::printf("%.*s\n", static_cast<int>(name.size()), name.data());
      return 0;
    }
    const test::Options options = test::parse(argc, argv);
    if (mode == "check") {
      test::Plugins plugins(options.component);
      std::printf("%lld\n", static_cast<long long>(test::check_newest(plugins.registry(), options)));
      return 0;
    }
    if (mode == "train") return test::run_train(options);
    if (mode == "kill") return test::run_kill(options);
    if (mode == "syscalls") return test::run_syscalls(options);
    if (mode == "flips") return test::run_flips(options);
    std::fprintf(stderr, "expected train, check, kill, syscalls, flips or failpoints\n");
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", mode.c_str(), e.what());
    return 1;
  }
}
