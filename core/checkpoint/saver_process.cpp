// Both sides of the saver process.
#include "core/checkpoint/saver_process.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include <spdlog/spdlog.h>

#include "core/base/error.h"
#include "core/base/host.h"
#include "core/checkpoint/folder.h"
#include "core/checkpoint/reader.h"
#include "core/config/toml_reader.h"

namespace gestalt::core {

namespace {

using support::Json;

constexpr int kNice = 13;  // the training comes first: beside a busy thread of it, about a twentieth of a core

Json json_of(const std::vector<int64_t>& list) {
  Json out = Json::array();
  for (const int64_t v : list) out.push(v);
  return out;
}

Json json_of(const SaveJob& job, const char* staging, uint64_t bytes) {
  Json texts = Json::array(), tensors = Json::array();
  for (const auto& [name, content] : job.texts) texts.push(Json::object({{"name", name}, {"content", content}}));
  for (const HostTensor& t : job.tensors)
    tensors.push(Json::object({{"name", t.name}, {"dtype", int64_t{t.dtype}}, {"shape", json_of(t.shape)},
                               {"parts", json_of(t.parts)}, {"at", static_cast<int64_t>(t.data - staging)}}));
  const TrainingState& s = job.state;
  return Json::object({{"op", "save"}, {"bytes", bytes}, {"step", s.step}, {"samples", s.samples}, {"data_digest", s.data_digest},
                       {"tokenizer", s.tokenizer}, {"loss_scale", s.loss_scale}, {"good_steps", s.good_steps}, {"seed", job.seed}, {"mesh", job.mesh},
                       {"verify", static_cast<int64_t>(job.verify)}, {"texts", std::move(texts)}, {"tensors", std::move(tensors)}});
}

SaveJob job_of(const Json& j, const char* staging) {
  SaveJob job;
  job.state.step = j.i64("step");
  job.state.samples = j.i64("samples");
  job.state.data_digest = j.str("data_digest");
  job.state.tokenizer = j.str("tokenizer");
  job.state.loss_scale = j.i64("loss_scale");
  job.state.good_steps = j.i64("good_steps");
  job.seed = j.at("seed").u64();
  job.mesh = j.str("mesh");
  job.verify = static_cast<Verify>(j.i64("verify"));
  for (const Json& t : j.at("texts").items()) job.texts.emplace_back(t.str("name"), t.str("content"));
  for (const Json& t : j.at("tensors").items())
    job.tensors.push_back({t.str("name"), static_cast<uint32_t>(t.i64("dtype")), t.i64_list("shape"), t.i64_list("parts"), staging + t.i64("at")});
  return job;
}

Json json_of(const ShardReport& r) {
  Json pieces = Json::array();
  for (const StoredPiece& p : r.pieces)
    pieces.push(Json::object({{"offset", json_of(p.offset)}, {"shape", json_of(p.shape)}, {"xxh3", p.digest}}));
  return Json::object({{"name", r.file.name}, {"bytes", r.file.bytes}, {"sha256", r.file.sha256}, {"pieces", std::move(pieces)}});
}

ShardReport report_of(const Json& j) {
  ShardReport r{{j.str("name"), j.at("bytes").u64(), j.str("sha256")}, {}};
  for (const Json& p : j.at("pieces").items()) r.pieces.push_back({0, p.i64_list("offset"), p.i64_list("shape"), p.str("xxh3")});
  return r;
}

// Memory shared by descriptor, mapped anew when its size changes.
class SharedMemory {
 public:
  explicit SharedMemory(int descriptor) : descriptor_(descriptor) {}
  ~SharedMemory() { unmap(); }
  SharedMemory(const SharedMemory&) = delete;
  int descriptor() const { return descriptor_; }
  uint64_t bytes() const { return bytes_; }
  // populate: pages are there at once, so that the first snapshot is as fast as every other.
  char* map(uint64_t bytes, bool populate) {
    if (bytes == bytes_) return data_;
    unmap();
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (populate ? MAP_POPULATE : 0), descriptor_, 0);
    if (at == MAP_FAILED) fail(GESTALT_OUT_OF_MEMORY, "[checkpoint] cannot map {} bytes of staging: {}", bytes, std::strerror(errno));
    data_ = static_cast<char*>(at);
    bytes_ = bytes;
    return data_;
  }

 private:
  void unmap() {
    if (bytes_) ::munmap(data_, bytes_);
    bytes_ = 0;
  }
  int descriptor_;
  char* data_ = nullptr;
  uint64_t bytes_ = 0;
};

class ProcessSaver : public Saver {
 public:
  ProcessSaver(const std::string& command, Json open, int lock, std::filesystem::path folder)
      : command_(command), open_(std::move(open)), lock_(lock), folder_(std::move(folder)),
        memory_(::memfd_create("gestalt-staging", MFD_CLOEXEC)) {
    if (memory_.descriptor() < 0) fail(GESTALT_IO_ERROR, "[checkpoint] cannot make staging memory: {}", std::strerror(errno));
    start();
  }
  ~ProcessSaver() override {
    process_.reset();
    ::close(memory_.descriptor());
  }

  char* staging(uint64_t bytes) override {
    if (bytes != memory_.bytes() && ::ftruncate(memory_.descriptor(), static_cast<off_t>(bytes)) != 0)
      fail(GESTALT_OUT_OF_MEMORY, "[checkpoint] cannot have {} bytes of staging: {}", bytes, std::strerror(errno));
    return memory_.map(std::max<uint64_t>(bytes, 1), true);
  }

  void submit(SaveJob job) override {
    step_ = job.state.step;
    pending_ = true;
    try {
      if (!process_) start();
      process_->channel().send(json_of(job, memory_.map(memory_.bytes(), true), memory_.bytes()));
    } catch (const Error& e) {
      process_.reset();
      start_error_ = e.message();
    }
  }

  std::optional<SaveOutcome> outcome(bool wait) override {
    if (!pending_) return std::nullopt;
    SaveOutcome out;
    out.step = step_;
    if (process_) {
      if (!process_->channel().has_message(wait ? -1 : 0)) return std::nullopt;
      if (const std::optional<Json> reply = process_->channel().receive()) {
        out.error = reply->str("error");
        out.saved = {reply->str("path"), reply->str("digest")};
        out.seconds = reply->f64("seconds");
      } else {
        out.error = "the saver process ended by " + process_->ending();
        remove_leftovers(folder_);
      }
      // What a format's library still holds after a failure is nothing to build on.
      if (!out.error.empty()) process_.reset();
    } else {
      out.error = start_error_;
    }
    pending_ = false;
    return out;
  }

 private:
  void start() {
    process_.emplace(command_, memory_.descriptor(), lock_);
    process_->channel().send(open_);
  }

  std::string command_;
  Json open_;
  int lock_;
  std::filesystem::path folder_;
  SharedMemory memory_;
  std::optional<Served> process_;
  int64_t step_ = 0;
  bool pending_ = false;
  std::string start_error_;
};

// What the process holds between messages.
class Server {
 public:
  Json handle(const Json& message) {
    if (message.str("op") == "open") {
      open(message);
      return nullptr;
    }
    if (!problem_.empty()) return refusal(problem_);
    const SaveJob job = job_of(message, memory_.map(message.at("bytes").u64(), false));
    return message.str("op") == "write" ? write(message, job) : save(message, job);
  }

 private:
  static Json refusal(const std::string& why) {
    return Json::object({{"error", why.empty() ? std::string("unknown error") : why}, {"path", ""}, {"digest", ""}, {"seconds", 0.0}});
  }

  // What goes wrong here is the answer to the first save: nobody waits for an answer now.
  void open(const Json& m) {
    try {
      std::vector<std::filesystem::path> search;
      for (const Json& s : m.at("search").items()) search.emplace_back(s.str());
      registry_.discover(search);
      // The very files that the trainer has loaded.
      const Lock lock = parse_lock(m.str("lock"), "the trainer's plugins");
      registry_.load({m.str("plugin")}, Trust::kLocked, &lock);
      const ConfigNode section = read_toml_text(m.str("section"), "the trainer's [checkpoint]");
      plugin_ = open_checkpoint_plugin(registry_, m.str("component"), &section);
      settings_.folder = m.str("folder");
      settings_.attempt = m.str("attempt");
      settings_.keep = m.i64("keep");
      settings_.writers = m.i64("writers");
      if (settings_.writers > 1) {
        Json theirs = m;
        theirs.set("writers", 1);
        for (int64_t i = 0; i < settings_.writers; ++i) {
          writers_.emplace_back("/proc/self/exe", Served::kMemory, -1);
          writers_.back().channel().send(theirs);
        }
      }
    } catch (const std::exception& e) {
      problem_ = e.what();
    }
  }

  Json save(const Json& message, const SaveJob& job) {
    const WriteShards write = writers_.empty() ? write_here(plugin_, job) : [&](const auto& folder, const auto& shares) {
      return write_apart(message, folder, shares);
    };
    const SaveOutcome out = run_save(settings_, std::string(view_of(plugin_.component().component->name)), job, write);
    return Json::object({{"error", out.error}, {"path", out.saved.path.native()}, {"digest", out.saved.digest}, {"seconds", out.seconds}});
  }

  Json write(const Json& message, const SaveJob& job) {
    try {
      std::vector<Slab> slabs;
      for (const Json& s : message.at("slabs").items())
        slabs.push_back({static_cast<size_t>(s.i64("tensor")), s.i64("first"), s.i64("rows")});
      return json_of(write_shard(plugin_, message.str("file"), job.tensors, slabs, job.verify));
    } catch (const std::exception& e) {
      return refusal(e.what());
    }
  }

  // All writers at once. A writer that dies is an error of this save.
  std::vector<ShardReport> write_apart(const Json& message, const std::filesystem::path& folder,
                                       const std::vector<std::vector<Slab>>& shares) {
    for (size_t i = 0; i < shares.size(); ++i) {
      Json part = message, slabs = Json::array();
      for (const Slab& s : shares[i])
        slabs.push(Json::object({{"tensor", static_cast<int64_t>(s.tensor)}, {"first", s.first}, {"rows", s.rows}}));
      part.set("op", "write");
      part.set("slabs", std::move(slabs));
      part.set("file", (folder / shard_name(plugin_, i)).native());
      writers_[i].channel().send(part);
    }
    std::vector<ShardReport> reports;
    std::string problem;
    for (size_t i = 0; i < shares.size(); ++i) {  // every answer is taken, also after a failure
      const std::optional<Json> reply = writers_[i].channel().receive();
      if (!reply)
        problem = fmt::format("writer process {} ended by {}", i, writers_[i].ending());
      else if (reply->has("error"))
        problem = reply->str("error");
      else
        reports.push_back(report_of(*reply));
    }
    if (!problem.empty()) fail(GESTALT_IO_ERROR, "{}", problem);
    return reports;
  }

  SharedMemory memory_{Served::kMemory};
  Registry registry_;
  Instance plugin_;
  SaveSettings settings_;
  std::vector<Served> writers_;
  std::string problem_;
};

}  // namespace

std::unique_ptr<Saver> make_process_saver(const std::string& command, const Registry& registry, const Instance& plugin,
                                          const ConfigNode* section, const SaveSettings& settings, int lock) {
  Json search = Json::array();
  for (const auto& path : registry.searched()) search.push(path.native());
  return std::make_unique<ProcessSaver>(
      command,
      Json::object({{"op", "open"}, {"search", std::move(search)}, {"lock", to_toml(registry.lock())},
                    {"plugin", std::string(plugin.component().plugin)}, {"component", view_of(plugin.component().component->name)},
                    {"section", section ? to_toml(*section) : std::string()}, {"folder", std::filesystem::absolute(settings.folder).native()},
                    {"attempt", settings.attempt}, {"keep", settings.keep}, {"writers", settings.writers}}),
      lock, settings.folder);
}

int serve_saver() {
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE}) ::signal(s, SIG_IGN);
  if (::setpriority(PRIO_PROCESS, 0, kNice) != 0) spdlog::warn("the saver cannot lower its priority");
  const Channel channel(Served::kSocket);
  Server server;
  while (const std::optional<Json> message = channel.receive()) {
    const Json reply = server.handle(*message);
    if (!reply.is_null() && !channel.send(reply)) break;
  }
  return 0;
}

}  // namespace gestalt::core
