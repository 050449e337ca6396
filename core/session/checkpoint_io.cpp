#include "core/session/checkpoint_io.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/file.h"
#include "core/base/host.h"
#include "core/config/attr_list.h"
#include "core/config/toml_reader.h"
#include "gestalt/abi/checkpoint.h"

namespace gestalt::core {

namespace fs = std::filesystem;

namespace {

Instance open_plugin(const Run& run) {
  const Config& config = run.config();
  if (!config.has("checkpoint.type"))
    fail(GESTALT_CONFIG_ERROR, "[checkpoint] is missing, expected a section with 'type' (\"gestalt.safetensors\")");
  const ComponentRef component = run.registry().component("checkpoint/1", config.str("checkpoint.type"));
  ConfigNode own = ConfigNode::table();
  for (const ConfigMember& m : config.find("checkpoint")->members())
    for (uint64_t i = 0; i < component.component->num_keys; ++i)
      if (m.key == view_of(component.component->keys[i].name)) own.insert(m.key, m.value);
  const AttrList attrs = to_attrs(own);
  return Instance(component, attrs.data(), attrs.size());
}

std::string shard_name(const gestalt_checkpoint_1* table) {
  return "shard-00000" + std::string(view_of(table->extension));
}

// Every tensor of a checkpoint: name, where it lives, logical shape and parts.
struct Entry {
  std::string name;
  ParameterStore::Location at;
  const Parameter* parameter;
};

std::vector<Entry> entries(const ParameterStore& store, const ModelTree& tree,
                           const std::vector<gestalt_optimizer_state>& states) {
  std::vector<Entry> list;
  for (const Parameter* p : tree.parameters()) {
    list.push_back({p->path, store.weight(*p), p});
    if (const auto master = store.state(*p, -1); master.data) list.push_back({"master." + p->path, master, p});
    for (size_t i = 0; i < states.size(); ++i)
      if (const auto s = store.state(*p, static_cast<int>(i)); s.data)
        list.push_back({"optimizer." + std::string(view_of(states[i].name)) + "." + p->path, s, p});
  }
  return list;
}

std::string state_text(const TrainingState& s) {
  return fmt::format("format = 1\nstep = {}\nsamples = {}\ndata_digest = \"{}\"\ntokenizer = \"{}\"\n", s.step, s.samples,
                     s.data_digest, s.tokenizer);
}

constexpr int64_t kStepDigits = 8;

void remove_old(const fs::path& parent, int64_t keep) {
  std::vector<fs::path> done;
  for (const auto& e : fs::directory_iterator(parent)) {
    const std::string name = e.path().filename().native();
    if (name.rfind("step-", 0) == 0 && name.find(".tmp") == std::string::npos) done.push_back(e.path());
  }
  std::sort(done.begin(), done.end());
  while (static_cast<int64_t>(done.size()) > keep) {
    // Renamed first: a half-deleted folder never looks like a checkpoint.
    const fs::path trash = parent / (".trash-" + done.front().filename().native());
    std::error_code ec;
    fs::rename(done.front(), trash, ec);
    if (!ec) fs::remove_all(trash, ec);
    done.erase(done.begin());
  }
}

}  // namespace

fs::path save_checkpoint(const Run& run, const ParameterStore& store, const ModelTree& tree,
                         const std::vector<gestalt_optimizer_state>& states, const TrainingState& state) {
  Instance plugin = open_plugin(run);
  const auto* table = plugin.table<gestalt_checkpoint_1>();
  const fs::path parent = run.output() / "checkpoints";
  const fs::path final = parent / fmt::format("step-{:0{}}", state.step, kStepDigits);
  const fs::path temporary = parent / (final.filename().native() + ".tmp");
  std::error_code ec;
  fs::create_directories(parent, ec);
  fs::remove_all(temporary, ec);
  if (!fs::create_directory(temporary, ec))
    fail(GESTALT_IO_ERROR, "[checkpoint] cannot make folder '{}': {}", temporary.native(), ec.message());

  void* writer = nullptr;
  const std::string shard = (temporary / shard_name(table)).native();
  const gestalt_host* host = plugin.component().host;
  check(host, table->open_write(plugin.self(), str_of(shard), &writer), plugin.text());
  std::vector<std::vector<char>> held;  // borrowed by the writer until it closes
  try {
    for (const Entry& e : entries(store, tree, states)) {
      held.push_back(store.read(e.at));
      Tensor t(e.at.dtype, e.parameter->global_shape, held.back().data());
      const std::vector<int64_t> offset(e.parameter->global_shape.size(), 0);
      gestalt_shard s{};
      s.struct_size = sizeof(s);
      s.name = str_of(e.name);
      s.global = e.parameter->global_shape.data();
      s.offset = offset.data();
      s.parts = e.parameter->parts.data();
      s.num_parts = e.parameter->parts.size();
      s.view = t.view;
      check(host, table->put(writer, &s), e.name);
    }
  } catch (...) {
    if (gestalt_status* status = table->close_write(writer, 0)) take(status);
    fs::remove_all(temporary, ec);
    throw;
  }
  check(host, table->close_write(writer, 1), plugin.text());
  Config resolved = run.config();
  resolved.root().erase("extends");
  write_file_atomic(temporary / "run.toml", resolved.to_toml());
  write_file_atomic(temporary / "plugins.lock.toml", to_toml(run.registry().lock()));
  write_file_atomic(temporary / "state.toml", state_text(state));
  sync_folder(temporary);
  fs::remove_all(final, ec);
  fs::rename(temporary, final, ec);
  if (ec) fail(GESTALT_IO_ERROR, "[checkpoint] cannot rename '{}': {}", temporary.native(), ec.message());
  sync_folder(parent);
  remove_old(parent, run.config().i64("checkpoint.keep", 2));
  return final;
}

TrainingState load_checkpoint(const Run& run, ParameterStore& store, const ModelTree& tree,
                              const std::vector<gestalt_optimizer_state>& states, const fs::path& folder, bool training) {
  if (!fs::is_directory(folder)) fail(GESTALT_NOT_FOUND, "[checkpoint] no such folder '{}'", folder.native());
  const ConfigNode node = read_toml_file(folder / "state.toml");
  auto integer = [&](const char* key) {
    const ConfigNode* n = node.find(key);
    if (!n || !n->is_integer()) fail(GESTALT_DATA_ERROR, "[{}] '{}' is not an integer", (folder / "state.toml").native(), key);
    return n->as_integer();
  };
  auto text = [&](const char* key) {
    const ConfigNode* n = node.find(key);
    return n && n->is_string() ? n->as_string() : std::string();
  };
  const TrainingState state{integer("step"), integer("samples"), text("data_digest"), text("tokenizer")};

  Instance plugin = open_plugin(run);
  const auto* table = plugin.table<gestalt_checkpoint_1>();
  const std::string shard = (folder / shard_name(table)).native();
  void* reader = nullptr;
  check(plugin.component().host, table->open_read(plugin.self(), str_of(shard), &reader), plugin.text());
  const std::shared_ptr<void> close(reader, [table](void* r) { table->close_read(r); });

  struct Stored {
    uint32_t dtype;
    std::vector<int64_t> shape;
  };
  std::map<std::string, Stored> stored;
  const gestalt_shard_sink sink{sizeof(gestalt_shard_sink), &stored, [](void* self, const gestalt_shard* s) noexcept {
                                  (*static_cast<std::map<std::string, Stored>*>(self))[std::string(view_of(s->name))] = {
                                      s->view.dtype, {s->global, s->global + s->view.ndim}};
                                }};
  check(plugin.component().host, table->list(reader, &sink), shard);

  std::set<std::string> known;
  std::vector<Entry> wanted;
  for (const Entry& e : entries(store, tree, states)) {
    known.insert(e.name);
    wanted.push_back(e);
  }
  std::string problems;
  for (const Entry& e : wanted) {
    auto it = stored.find(e.name);
    if (it == stored.end()) {
      problems += "\n  missing: " + e.name;
    } else if (it->second.shape != e.parameter->global_shape || it->second.dtype != e.at.dtype) {
      problems += fmt::format("\n  {} is {}, expected {}", e.name, describe(Tensor(it->second.dtype, it->second.shape).view),
                              describe(Tensor(e.at.dtype, e.parameter->global_shape).view));
    }
  }
  for (const auto& [name, s] : stored) {
    const bool of_training = name.rfind("optimizer.", 0) == 0 || name.rfind("master.", 0) == 0;
    if (!known.contains(name) && (training || !of_training)) problems += "\n  unexpected: " + name;
  }
  if (!problems.empty())
    fail(GESTALT_DATA_ERROR, "[{}] the checkpoint does not fit the model:{}", folder.native(), problems);

  // All tensors are read before the first is written, so that a bad file changes nothing.
  std::vector<std::vector<char>> values;
  for (const Entry& e : wanted) {
    std::vector<char>& v = values.emplace_back(static_cast<size_t>(e.at.length) * dtype_size(e.at.dtype));
    Tensor t(e.at.dtype, e.parameter->global_shape, v.data());
    check(plugin.component().host, table->get(reader, str_of(e.name), &t.view), shard);
  }
  for (size_t i = 0; i < wanted.size(); ++i) store.write(wanted[i].at, values[i].data(), values[i].size());
  return state;
}

fs::path newest_checkpoint(const fs::path& output) {
  fs::path best;
  std::error_code ec;
  for (const auto& e : fs::directory_iterator(output / "checkpoints", ec)) {
    const std::string name = e.path().filename().native();
    if (name.rfind("step-", 0) != 0 || name.find(".tmp") != std::string::npos) continue;
    if (best.empty() || e.path() > best) best = e.path();
  }
  return best;
}

}  // namespace gestalt::core
