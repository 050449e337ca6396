#include "core/session/model_source.h"

#include "core/base/host.h"
#include "core/tensor/tensor.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace gestalt::core {

namespace {

constexpr std::array<const char*, 6> kKeyKinds = {"loaded", "missing", "unexpected", "reshaped", "tied", "ignored"};

}  // namespace

std::string ForeignTensors::config_text() const {
  std::string text;
  const gestalt_byte_sink sink{sizeof(gestalt_byte_sink), &text, [](void* self, uint64_t, gestalt_str more) noexcept {
                                 static_cast<std::string*>(self)->append(view_of(more));
                               }};
  check(host_, table_->config(model_.get(), &sink));
  return text;
}

bool ForeignTensors::read(const std::string& name, gestalt_view& out) const {
  gestalt_status* status = table_->read(model_.get(), str_of(name), &out);
  if (!status) return true;
  const Error e = take(status);
  if (e.code() == GESTALT_NOT_FOUND) return false;
  throw e;
}

void ForeignTensors::load(const ModelTree& tree, ParameterStore& store) const {
  // All tensors are read before the first is written, so that a bad file changes nothing.
  struct Loaded {
    const Parameter* parameter;
    std::vector<char> values;
  };
  std::vector<Loaded> loaded;
  std::vector<std::string> missing;
  std::string problems;
  for (const Parameter* p : tree.parameters()) {
    Tensor t(p->type.dtype, p->global_shape);
    Loaded& l = loaded.emplace_back(Loaded{p, std::vector<char>(static_cast<size_t>(num_bytes(t.view)))});
    t.view.data = l.values.data();
    try {
      if (!read(p->path, t.view)) missing.push_back(p->path);
    } catch (const Error& e) {
      if (e.code() != GESTALT_DATA_ERROR) throw;
      problems += "\n  " + e.message();
    }
  }
  // The format knows under which name it looked.
  const KeyReport keys = report();
  for (const std::string& name : missing) {
    std::string line = name;
    for (const std::string& said : keys.lines[GESTALT_KEY_MISSING])
      if (said.starts_with(name + " ")) line = said;
    problems += "\n  missing: " + line;
  }
  if (!problems.empty())
    fail(GESTALT_DATA_ERROR, "[{}] the stored tensors do not fit the model:{}", where_, problems);
  check_report(keys);
  for (const Loaded& l : loaded) store.set(*l.parameter, l.values.data(), l.values.size());
}

void ForeignTensors::check_settings(const std::vector<std::string>& allowed) const {
  std::string unknown, first;
  const KeyReport keys = report();
  for (const std::string& line : keys.lines[GESTALT_KEY_SETTING]) {
    const std::string key = line.substr(0, line.find(' '));
    if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) {
      spdlog::warn("not understood, ignored because [model] allow_keys says so: {}", line);
      continue;
    }
    if (first.empty()) first = key;
    unknown += "\n  " + line;
  }
  if (!unknown.empty())
    fail(GESTALT_DATA_ERROR, "[{}] settings that are not understood and may change the model:{}\n  one that does not is "
         "allowed by --set 'model.allow_keys=[\"{}\"]'", where_, unknown, first);
}

ForeignTensors::KeyReport ForeignTensors::report() const {
  KeyReport keys;
  const gestalt_byte_sink sink{sizeof(gestalt_byte_sink), &keys, [](void* self, uint64_t kind, gestalt_str line) noexcept {
                                 auto& lines = static_cast<KeyReport*>(self)->lines;
                                 if (kind < lines.size()) lines[kind].emplace_back(view_of(line));
                               }};
  check(host_, table_->report(model_.get(), &sink));
  return keys;
}

void ForeignTensors::check_report(const KeyReport& keys) const {
  std::string counts;
  for (size_t k = 0; k < kKeyKinds.size(); ++k) {
    counts += fmt::format("{}{} {}", k ? ", " : "", keys.lines[k].size(), kKeyKinds[k]);
    for (const std::string& line : keys.lines[k]) spdlog::debug("key {}: {}", kKeyKinds[k], line);
  }
  spdlog::info("keys of '{}': {}", where_, counts);
  for (const std::string& line : keys.lines[GESTALT_KEY_IGNORED]) spdlog::info("ignored: {}", line);
  std::string unexpected;
  for (const std::string& line : keys.lines[GESTALT_KEY_UNEXPECTED]) unexpected += "\n  unexpected: " + line;
  if (!unexpected.empty())
    fail(GESTALT_DATA_ERROR, "[{}] tensors that the model does not have:{}", where_, unexpected);
}

std::unique_ptr<ForeignModel> ForeignModel::detect(Registry& registry, const std::filesystem::path& path) {
  for (const Registry::Found& found : registry.found())
    for (const ComponentEntry& entry : found.manifest.components) {
      if (entry.kind != "format/1") continue;
      registry.load({found.manifest.id});
      const ComponentRef component = registry.component(entry.kind, entry.name);
      Instance format(component, nullptr, 0);
      if (!format.table<gestalt_format_1>()->detect(format.self(), str_of(path.native()))) continue;
      std::unique_ptr<ForeignModel> model(new ForeignModel);
      model->path_ = path;
      model->plugin_ = found.manifest.id;
      model->format_ = std::move(format);
      return model;
    }
  return nullptr;
}

ForeignTensors ForeignModel::open(const std::string& tensors_file, const std::string& prefix) const {
  const auto* table = format_.table<gestalt_format_1>();
  const gestalt_host* host = format_.component().host;
  void* model = nullptr;
  check(host, table->open(format_.self(), str_of(path_.native()), str_of(tensors_file), str_of(prefix), &model));
  return ForeignTensors(table, host, model, tensors_file.empty() ? path_.native() : tensors_file);
}

}  // namespace gestalt::core
