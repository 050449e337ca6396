#include "core/session/checkpoints.h"

#include <algorithm>
#include <chrono>
#include <set>

#include <spdlog/spdlog.h>

#include "core/base/host.h"
#include "core/base/text.h"
#include "core/checkpoint/digest.h"
#include "core/checkpoint/saver_process.h"
#include "core/config/toml_reader.h"

namespace gestalt::core {

namespace fs = std::filesystem;

namespace {

constexpr const char* kRunFile = "run.toml";
constexpr const char* kLockFile = "plugins.lock.toml";
constexpr uint64_t kAlign = 64;
constexpr uint64_t kFullBelow = uint64_t{1} << 30;  // bytes of one writer that 'auto' reads back whole

struct Entry {
  std::string name;
  ParameterStore::Location at;
  const Parameter* parameter;
};

std::vector<Entry> entries(const ModelState& model, bool training) {
  std::vector<Entry> list;
  for (const Parameter* p : model.tree.parameters()) {
    list.push_back({p->path, model.store.weight(*p), p});
    if (!training) continue;
    if (const auto master = model.store.state(*p, -1); master.data) list.push_back({"master." + p->path, master, p});
    for (size_t i = 0; i < model.states.size(); ++i)
      if (const auto s = model.store.state(*p, static_cast<int>(i)); s.data)
        list.push_back({"optimizer." + std::string(view_of(model.states[i].name)) + "." + p->path, s, p});
  }
  return list;
}

uint64_t staging_bytes(const Entry& e) {
  return (static_cast<uint64_t>(e.at.length) * dtype_size(e.at.dtype) + kAlign - 1) / kAlign * kAlign;
}

uint64_t staging_bytes(const std::vector<Entry>& list) {
  uint64_t total = 0;
  for (const Entry& e : list) total += staging_bytes(e);
  return total;
}

std::string type_text(uint32_t dtype, const std::vector<int64_t>& shape) { return describe(Tensor(dtype, shape).view); }

Verify verify_of(const std::string& text, uint64_t bytes_a_writer) {
  if (text == "none") return Verify::kNone;
  return text == "full" || (text == "auto" && bytes_a_writer < kFullBelow) ? Verify::kFull : Verify::kSample;
}

fs::path folder_of(const Run& run) { return run.output() / "checkpoints"; }

}  // namespace

std::unique_ptr<CheckpointReader> open_checkpoint(const Run& run, const std::string& resume, bool allow_older) {
  std::error_code ec;
  fs::path runs = resume == "auto" ? run.output() : fs::path(resume);
  if (resume != "auto" && !fs::is_directory(runs / "checkpoints", ec))
    return std::make_unique<CheckpointReader>(run.registry(), resume);
  const std::vector<Committed> all = committed(runs / "checkpoints");
  for (size_t i = all.size(); i-- > 0;) try {
      return std::make_unique<CheckpointReader>(run.registry(), all[i].path);
    } catch (const Error& e) {
      if (e.code() != GESTALT_DATA_ERROR) throw;
      if (!allow_older || i == 0)
        fail(e.code(), "{}{}", e.message(), i > 0 && !allow_older ? "\n--allow-older resumes from the checkpoint before" : "");
      spdlog::error("{}\nresuming from the checkpoint before", e.message());
    }
  if (resume != "auto") fail(GESTALT_NOT_FOUND, "[checkpoint] no checkpoint below '{}'", runs.native());
  return nullptr;
}

void load_state(CheckpointReader& reader, const ModelState& model, bool training) {
  std::string problems;
  const std::vector<Entry> wanted = entries(model, training);
  std::set<std::string> known;
  for (const Entry& e : wanted) {
    known.insert(e.name);
    const StoredTensor* t = reader.manifest().find(e.name);
    if (!t)
      problems += "\n  missing: " + e.name;
    else if (t->shape != e.parameter->global_shape || t->dtype != e.at.dtype)
      problems += fmt::format("\n  {} is {}, expected {}", e.name, type_text(t->dtype, t->shape),
                              type_text(e.at.dtype, e.parameter->global_shape));
  }
  for (const StoredTensor& t : reader.manifest().tensors) {
    const bool of_training = t.name.rfind("optimizer.", 0) == 0 || t.name.rfind("master.", 0) == 0;
    if (!known.contains(t.name) && (training || !of_training)) problems += "\n  unexpected: " + t.name;
  }
  if (!problems.empty())
    fail(GESTALT_DATA_ERROR, "[{}] the checkpoint does not fit the model:{}", reader.folder().native(), problems);
  std::vector<std::vector<char>> values;
  for (const Entry& e : wanted) values.push_back(reader.read(*reader.manifest().find(e.name)));
  for (size_t i = 0; i < wanted.size(); ++i) model.store.write(wanted[i].at, values[i].data(), values[i].size());
}

std::string digest_of(const ModelState& model, const TrainingState& state) {
  CheckpointManifest m;
  m.state = state;
  for (const Entry& e : entries(model, true)) {
    const std::vector<char> value = model.store.read(e.at);
    m.tensors.push_back({e.name, e.at.dtype, e.parameter->global_shape, {}, xxh3_hex(value.data(), value.size()), {}});
  }
  std::sort(m.tensors.begin(), m.tensors.end(), [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  return state_digest(m);
}

std::vector<std::string> resume_differences(const Run& run, const fs::path& checkpoint) {
  ConfigNode now = run.config().root();
  now.erase("extends");
  std::vector<std::string> lines = config_differences(read_toml_file(checkpoint / kRunFile), now);
  const Lock before = read_lock(checkpoint / kLockFile), after = run.registry().lock();
  for (const LockEntry& b : before.plugins) {
    const LockEntry* a = after.find(b.id);
    if (!a)
      lines.push_back(fmt::format("plugin {}: {} -> (none)", b.id, b.version));
    else if (a->version != b.version || a->sha256 != b.sha256)
      lines.push_back(fmt::format("plugin {}: {} ({}) -> {} ({})", b.id, b.version, b.sha256.substr(0, 12), a->version, a->sha256.substr(0, 12)));
  }
  for (const LockEntry& a : after.plugins)
    if (!before.find(a.id)) lines.push_back(fmt::format("plugin {}: (none) -> {}", a.id, a.version));
  return lines;
}

Checkpoints::Checkpoints(const Run& run, std::function<void(const std::string&)> print)
    : run_(run), print_(std::move(print)), lock_(folder_of(run)) {
  const Config& config = run.config();
  if (!config.has("checkpoint.type"))
    fail(GESTALT_CONFIG_ERROR, "[checkpoint] is missing, expected a section with 'type' (\"gestalt.hdf5\")");
  plugin_ = open_checkpoint_plugin(run.registry(), config.str("checkpoint.type"), config.find("checkpoint"));
  settings_ = {folder_of(run), lock_.attempt(), config.i64("checkpoint.keep", 2), config.i64("checkpoint.writers", 1)};
  max_failed_ = config.i64("checkpoint.max_failed_saves", 3);
  remove_leftovers(settings_.folder);
}

void Checkpoints::start(const std::string& saver_command, int64_t from_step) {
  if (const int64_t num = set_aside_after(settings_.folder, from_step, lock_.attempt()))
    spdlog::warn("set {} later checkpoints of another history aside below '{}'", num, settings_.folder.native());
  saver_ = saver_command.empty() ? make_inline_saver(plugin_, settings_)
                                 : make_process_saver(saver_command, run_.registry(), plugin_, run_.config().find("checkpoint"),
                                                      settings_, lock_.descriptor());
}

Checkpoints::~Checkpoints() {
  try {
    collect(true);
  } catch (const Error&) {  // said already
  }
}

void Checkpoints::prepare(const ModelState& model) { saver_->staging(staging_bytes(entries(model, true))); }

fs::path Checkpoints::save(const ModelState& model, const TrainingState& state) {
  const auto begin = std::chrono::steady_clock::now();
  collect(true);
  const auto staged = std::chrono::steady_clock::now();
  try {
    saver_->submit(snapshot(model, state));
    auto seconds = [](auto time) { return std::chrono::duration<double>(time).count(); };
    spdlog::info("snapshot of step {} in {}{}", state.step, format_duration(seconds(std::chrono::steady_clock::now() - staged)),
                 staged - begin > std::chrono::milliseconds(100)
                     ? fmt::format(", after {} of waiting for the save before", format_duration(seconds(staged - begin)))
                     : "");
  } catch (const Error& e) {  // no memory to stage it
    count_failure(state.step, e.message());
  }
  collect(false);
  return settings_.folder / step_name(state.step);
}

SaveJob Checkpoints::snapshot(const ModelState& model, const TrainingState& state) {
  const std::vector<Entry> list = entries(model, true);
  const uint64_t total = staging_bytes(list);
  SaveJob job{state, run_.seed(), model.mesh, {}, {},
              verify_of(run_.config().str("checkpoint.verify", "auto"), total / static_cast<uint64_t>(settings_.writers))};
  char* room = saver_->staging(total);
  for (const Entry& e : list) {
    model.store.read(e.at, room);
    job.tensors.push_back({e.name, e.at.dtype, e.parameter->global_shape, e.parameter->parts, room});
    room += staging_bytes(e);
  }
  Config resolved = run_.config();
  resolved.root().erase("extends");
  job.texts = {{kRunFile, resolved.to_toml()}, {kLockFile, to_toml(run_.registry().lock())}};
  return job;
}

void Checkpoints::collect(bool wait) {
  const std::optional<SaveOutcome> outcome = saver_ ? saver_->outcome(wait) : std::nullopt;
  if (!outcome) return;
  if (outcome->error.empty()) {
    failed_ = 0;
    last_error_.clear();
    print_(fmt::format("saved {} state {}\n", outcome->saved.path.native(), outcome->saved.digest));
    spdlog::info("checkpoint of step {} written in {}", outcome->step, format_duration(outcome->seconds));
    return;
  }
  count_failure(outcome->step, outcome->error);
}

void Checkpoints::count_failure(int64_t step, const std::string& why) {
  last_error_ = fmt::format("the checkpoint of step {} failed: {}", step, why);
  if (++failed_ >= max_failed_)
    fail(GESTALT_IO_ERROR, "[checkpoint] {} saves in a row failed, the last: {}", failed_, last_error_);
  spdlog::error("{}; training goes on ({} of {} in a row)", last_error_, failed_, max_failed_);
}

void Checkpoints::finish() {
  collect(true);
  if (!last_error_.empty()) fail(GESTALT_IO_ERROR, "[checkpoint] {}", last_error_);
}

}  // namespace gestalt::core
