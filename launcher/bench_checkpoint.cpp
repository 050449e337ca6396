// gestalt bench checkpoint: 64 MiB of state through a saver process onto the disk of the temporary folder, and the same
// without a disk (/dev/shm), which bounds the rate from the side of formats and digests. Compare with
//   fio --name=w --rw=write --bs=1m --size=64m --end_fsync=1 --directory=DIR
#include <cstring>
#include <filesystem>

#include "core/base/error.h"
#include "core/checkpoint/folder.h"
#include "core/checkpoint/reader.h"
#include "core/checkpoint/saver_process.h"
#include "core/session/run.h"
#include "launcher/benchmark.h"

namespace gestalt::launcher {
namespace {

namespace fs = std::filesystem;
using namespace core;

constexpr int kTensors = 32;
constexpr int64_t kRows = 1024, kColumns = 512;  // f32: 2 MiB a tensor
constexpr uint64_t kBytes = kTensors * kRows * kColumns * 4;
constexpr double kMiB = 1 << 20;

// A training's state, a folder to save it into, and the saver process.
class Saving {
 public:
  Saving(const fs::path& parent, const char* component, int64_t writers, Verify verify) : verify_(verify), state_(kBytes / 4) {
    for (size_t i = 0; i < state_.size(); ++i) state_[i] = static_cast<float>(i * 2654435761u % 1000003u);
    publish_interfaces();
    registry_.discover(plugin_search({}, Trust::kNamed));
    for (const auto& found : registry_.found())
      if (found.manifest.component("checkpoint/1", component)) registry_.load({found.manifest.id});
    plugin_ = open_checkpoint_plugin(registry_, component, nullptr);
    std::string name = (parent / "gestalt-bench.XXXXXX").native();
    if (!::mkdtemp(name.data())) fail(GESTALT_IO_ERROR, "[bench] no folder '{}'", name);
    folder_ = name;
    lock_ = std::make_unique<FolderLock>(folder_);
    saver_ = make_process_saver("/proc/self/exe", registry_, plugin_, nullptr, {folder_, lock_->attempt(), 1, writers}, lock_->descriptor());
    saver_->staging(kBytes);
    save();  // starts the plugin and maps the memory
  }
  ~Saving() {
    saver_.reset();
    lock_.reset();
    std::error_code ec;
    fs::remove_all(folder_, ec);
    registry_.shutdown();
  }
  Saving(const Saving&) = delete;

  void snapshot() {
    SaveJob job{{++step_, step_, "", ""}, 1, "", {}, {}, verify_};
    char* room = saver_->staging(kBytes);
    for (int64_t i = 0; i < kTensors; ++i) {
      std::memcpy(room, state_.data() + i * kRows * kColumns, kBytes / kTensors);
      job.tensors.push_back({"t" + std::to_string(i), GESTALT_F32, {kRows, kColumns}, {}, room});
      room += kBytes / kTensors;
    }
    state_[0] += 1;  // another state each time
    saver_->submit(std::move(job));
  }
  void finish() {
    const std::optional<SaveOutcome> outcome = saver_->outcome(true);
    if (outcome && !outcome->error.empty()) fail(GESTALT_IO_ERROR, "[bench] {}", outcome->error);
  }
  void save() {
    snapshot();
    finish();
  }

 private:
  Verify verify_;
  std::vector<float> state_;
  Registry registry_;
  Instance plugin_;
  fs::path folder_;
  std::unique_ptr<FolderLock> lock_;
  std::unique_ptr<Saver> saver_;
  int64_t step_ = 0;
};

Measured rate(std::string what, double ns) {
  return {fmt::format("{}: {:.0f} MiB/s", what, kBytes / kMiB / (ns * 1e-9)), ns};
}

std::vector<Measured> bench_checkpoint() {
  std::vector<Measured> lines;
  for (const char* component : {"gestalt.hdf5", "gestalt.safetensors"}) {
    for (const fs::path& parent : {fs::temp_directory_path(), fs::path("/dev/shm")}) {
      const std::string where = fmt::format("{}, {}", component, parent.native());
      for (const int64_t writers : {1, 2}) {
        Saving saving(parent, component, writers, Verify::kFull);
        if (writers == 1 && parent == fs::temp_directory_path())
          lines.push_back({where + ": stall of a snapshot of 64 MiB", lowest_ns(1, [&] { saving.finish(); }, [&] { saving.snapshot(); }), 50e6});
        saving.finish();
        lines.push_back(rate(fmt::format("{}: save, {} writers", where, writers), lowest_ns(1, [] {}, [&] { saving.save(); })));
      }
      Saving saving(parent, component, 1, Verify::kNone);
      lines.push_back(rate(where + ": save, not read back", lowest_ns(1, [] {}, [&] { saving.save(); })));
    }
  }
  return lines;
}

const Benchmark kCheckpoint("checkpoint", "saving 64 MiB: stall and rate, with a disk and without", bench_checkpoint);

}  // namespace
}  // namespace gestalt::launcher
