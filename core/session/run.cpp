#include "core/session/run.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "core/base/host.h"
#include "core/config/attr_list.h"
#include "core/runtime/parallel.h"
#include "core/tensor/dtype.h"

namespace gestalt::core {

namespace fs = std::filesystem;

namespace {

constexpr const char* kResolvedName = "run.toml";  // the resolved configuration inside a checkpoint

// Sections whose keys a component completes.
struct Section {
  const char* section;
  const char* key;   // names the component
  const char* kind;
  bool of_training;  // looked at only when the task uses data
};
constexpr Section kSections[] = {{"device", "run.device", "device/1", false},
                                 {"model", "model.type", "module/1", false},
                                 {"tokenizer", "tokenizer.type", "tokenizer/1", false},
                                 {"data", "data.type", "dataset/1", true},
                                 {"optimizer", "optimizer.type", "optimizer/1", true},
                                 {"checkpoint", "checkpoint.type", "checkpoint/1", false}};

std::vector<fs::path> search_of(const Config& config, const fs::path& base) {
  std::vector<fs::path> out;
  for (const std::string& s : config.str_list("plugins.search"))
    out.push_back(fs::path(s).is_absolute() ? fs::path(s) : fs::absolute(base / s).lexically_normal());
  return out;
}

ConfigSchema schema_of(const Config& config, const Registry& registry, bool uses_data) {
  ConfigSchema schema = core_schema();
  const std::vector<std::string> use = config.str_list("plugins.use");
  auto extend = [&](const std::string& section, const char* kind, const std::string& name) {
    const ComponentEntry* entry = registry.component_entry(use, kind, name);
    if (!entry) registry.component(kind, name);  // throws with the nearest name, or the plugin that has it
    // A tracker has defaults even where the run file has no table for it.
    schema.extend(section, name, entry->keys,
                  std::string_view(kind) == "tracker/1" ? Presence::kAlways : Presence::kIfPresent);
  };
  for (const Section& s : kSections) {
    const ConfigNode* name = config.find(s.key);
    if ((s.of_training && !uses_data) || (!name && std::string_view(s.key) != "run.device")) continue;
    if (name && !name->is_string()) continue;  // the check says so
    extend(s.section, s.kind, name ? name->as_string() : "cpu");
  }
  if (uses_data)
    for (const std::string& t : config.str_list("metrics.trackers")) extend(join_path("metrics", t), "tracker/1", t);
  return schema;
}

std::map<std::string, std::string> string_table(const ConfigNode* node, std::string_view what) {
  std::map<std::string, std::string> out;
  for (size_t i = 0; node && i < node->members().size(); ++i) {
    const ConfigMember& m = node->members()[i];
    if (!m.value.is_string())
      fail(GESTALT_CONFIG_ERROR, "{}: [{}] '{}' is a {}, expected a string", m.value.origin.position(), what, m.key,
           m.value.kind_name());
    out[m.key] = m.value.as_string();
  }
  return out;
}

bool is_checkpoint(const fs::path& target) {
  std::error_code ec;
  return fs::is_directory(target, ec) && fs::exists(target / kResolvedName, ec);
}

// A regular file without a zero byte near its start: run files are, files of tensors are not.
bool is_text(const fs::path& target) {
  std::error_code ec;
  if (!fs::is_regular_file(target, ec)) return false;
  std::ifstream in(target, std::ios::binary);
  char head[4096];
  in.read(head, sizeof(head));
  return std::find(head, head + in.gcount(), '\0') == head + in.gcount();
}

// A device that the command line names, or that a model of another program is to run on, brings the plugins of this
// product that have it and kernels for it; a run file names its own.
void use_device(Config& config, const Registry& registry, bool foreign) {
  const ConfigNode* device = config.find("run.device");
  if (!device || !device->is_string() || !(foreign || device->origin.kind == Origin::Kind::kFlag)) return;
  const std::string name = device->as_string();
  std::vector<std::string> use = config.str_list("plugins.use");
  if (registry.component_entry(use, "device/1", name)) return;
  const size_t named = use.size();
  for (const Registry::Found& f : registry.found()) {
    const Manifest& m = f.manifest;
    const bool has_device = std::any_of(m.components.begin(), m.components.end(), [&](const ComponentEntry& c) {
      return c.kind == "device/1" && c.name == name;
    });
    const bool has_kernels =
        std::any_of(m.kernels.begin(), m.kernels.end(), [&](const KernelEntry& k) { return k.device == name; });
    if (m.id.starts_with("gestalt.") && (has_device || has_kernels) && std::find(use.begin(), use.end(), m.id) == use.end())
      use.push_back(m.id);
  }
  if (use.size() == named) return;
  std::vector<ConfigNode> ids;
  for (const std::string& id : use) ids.push_back(ConfigNode::string(id));
  config.set("plugins.use", ConfigNode::array(std::move(ids)), Origin::of(Origin::Kind::kDefault, "the device " + name));
}

}  // namespace

void publish_interfaces() { parallel(); }

bool is_run(const fs::path& target) {
  std::error_code ec;
  if (!fs::exists(target, ec)) return false;
  if (is_checkpoint(target) || is_text(target)) return true;
  Registry registry;
  registry.discover(plugin_search({}, Trust::kNamed));
  return ForeignModel::detect(registry, fs::absolute(target).lexically_normal()) != nullptr;
}

Run::Run(const RunOptions& options) {
  publish_interfaces();
  fs::path file = options.target;
  std::error_code ec;
  if (!fs::exists(file, ec))
    fail(GESTALT_NOT_FOUND, "[{}] no such file, expected a run file or a model", options.target.native());
  if (is_checkpoint(file)) {
    checkpoint_ = fs::absolute(file).lexically_normal();
    file = checkpoint_ / kResolvedName;
  } else if (!is_text(file)) {
    registry_.discover(plugin_search({}, Trust::kNamed));
    foreign_ = ForeignModel::detect(registry_, fs::absolute(file).lexically_normal());
    if (!foreign_)
      fail(fs::is_directory(file, ec) ? GESTALT_NOT_FOUND : GESTALT_DATA_ERROR,
           "[{}] holds neither '{}' nor anything that a format plugin knows, expected a run file, a checkpoint or a model",
           options.target.native(), kResolvedName);
  }
  if (foreign_) {
    const ForeignTensors model = foreign_->open();
    config_ = Config::from_text(model.config_text(), foreign_->path().native(), options.sets, options.environment);
    model.check_settings(config_.str_list("model.allow_keys"));
  } else {
    config_ = Config::load(file, options.sets, options.environment);
  }
  if (!options.defaults.empty()) config_.merge_defaults(options.defaults, "the task");
  if (!options.uses_data)
    for (const char* section : {"data", "optimizer", "train", "metrics"}) config_.root().erase(section);

  const Trust trust = config_.str("plugins.trust", "named") == "locked" ? Trust::kLocked : Trust::kNamed;
  if (foreign_ && trust == Trust::kLocked)
    fail(GESTALT_CONFIG_ERROR, "[plugins.trust] is 'locked', but '{}' was opened by plugin '{}', which no lock file names; "
         "write a run file", options.target.native(), foreign_->plugin());
  registry_.discover(plugin_search(search_of(config_, fs::absolute(file).parent_path()), trust));
  use_device(config_, registry_, foreign_ != nullptr);
  const std::vector<std::string> use = config_.str_list("plugins.use");
  for (const std::string& id : use) registry_.find(id);
  check(config_, schema_of(config_, registry_, options.uses_data));

  std::unique_ptr<Lock> lock;
  if (trust == Trust::kLocked) lock = std::make_unique<Lock>(read_lock(config_.str("plugins.lock")));
  registry_.load(use, trust, lock.get());
  for (const OpRef& op : registry_.ops()) ops_.add_plugin_op(op.op, op.host, std::string(op.plugin));
  dtype_ = parse_dtype(config_.str("run.dtype"), "run.dtype");
  seed_ = static_cast<uint64_t>(config_.i64("run.seed"));
}

Run::Run(const std::string& id) {
  publish_interfaces();
  registry_.discover(plugin_search({}, Trust::kNamed));
  registry_.load({id});
}

fs::path Run::output() const {
  const std::string text = config_.str("run.output", "");
  if (text.empty() || text == "runs/<run.name>") return fs::path("runs") / config_.str("run.name");
  return text;
}

KernelPolicy Run::kernel_policy(const std::string& kernels_of) const {
  KernelPolicy p;
  p.order = config_.str_list("kernels." + kernels_of);
  p.pins = string_table(config_.find("kernels.pin"), "kernels.pin");
  const ConfigNode* rules = config_.find("kernels.rule");
  for (size_t i = 0; rules && i < rules->elements().size(); ++i) {
    const std::string at = fmt::format("kernels.rule[{}].", i);
    p.rules.push_back({config_.str(at + "where"), config_.str(at + "op"), config_.str(at + "backend"),
                       rules->elements()[i].origin.position()});
  }
  if (config_.boolean("run.deterministic", false)) p.require |= GESTALT_REQUIRE_DETERMINISTIC;
  std::vector<std::string> known;
  for (const KernelRef& k : registry_.kernels()) known.emplace_back(view_of(k.kernel->backend));
  auto must_exist = [&](const std::string& backend, const std::string& where) {
    if (std::find(known.begin(), known.end(), backend) != known.end()) return;
    fail(GESTALT_CONFIG_ERROR, "[{}] backend '{}' is of no loaded plugin; loaded backends: {}", where, backend, [&] {
      std::string list;
      std::sort(known.begin(), known.end());
      known.erase(std::unique(known.begin(), known.end()), known.end());
      for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
      return list.empty() ? std::string("none") : list;
    }());
  };
  for (const std::string& b : p.order) must_exist(b, "kernels." + kernels_of);
  for (const auto& [op, b] : p.pins) must_exist(b, "kernels.pin \"" + op + "\"");
  for (const auto& r : p.rules) must_exist(r.backend, "kernels.rule at " + r.origin);
  return p;
}

RecomputePolicy Run::recompute_policy() const {
  return {config_.str_list("model.recompute.paths"), config_.str_list("model.recompute.ops")};
}

void Run::set_steps(int64_t steps) {
  config_.set("train.steps", ConfigNode::integer(steps), Origin::of(Origin::Kind::kDefault, "measured from train.minutes"));
}

Machine::Machine(const Run& run) {
  const Config& config = run.config();
  const ConfigNode* section = config.find("device");
  Config own = Config::from_text("", "device");
  own.root().insert("device", section ? *section : ConfigNode::table());
  const ComponentRef component = run.registry().component("device/1", config.str("run.device"));
  std::vector<KeySpec> keys;
  for (uint64_t i = 0; i < component.component->num_keys; ++i) keys.push_back(key_spec(component.component->keys[i]));
  ConfigSchema schema;
  schema.extend("device", config.str("run.device"), keys);
  check(own, schema);
  const ConfigNode* complete = own.find("device");
  const AttrList attrs = to_attrs(complete ? *complete : ConfigNode::table());
  auto instance = std::make_shared<Instance>(component, attrs.data(), attrs.size());
  device_ = std::make_unique<Device>(component.host, instance->table<gestalt_device_1>(), instance->self(), instance);
  // After the device: collectives copy through it.
  const AttrList none;
  comm_ = Instance(run.registry().component("comm/1", config.str("mesh.control")), none.data(), none.size());
  int64_t rank = 0, world = 1;
  check(comm_.component().host, comm_.table<gestalt_comm_1>()->world(comm_.self(), &rank, &world), comm_.text());
  mesh_ = Mesh(config, rank, world);
  policy_ = run.kernel_policy(device_->kernels_of());
  const int64_t num_streams = config.i64("run.streams", 1);
  for (int64_t i = 0; i < num_streams; ++i) streams_.push_back(device_->open_stream());
  arenas_ = std::make_unique<ArenaSet>(*device_);
}

}  // namespace gestalt::core
