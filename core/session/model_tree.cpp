#include "core/session/model_tree.h"

#include <algorithm>
#include <numeric>

#include "core/base/host.h"
#include "core/base/text.h"
#include "core/config/attr_list.h"
#include "core/config/toml_reader.h"
#include "core/tensor/dtype.h"

namespace gestalt::core {

namespace {

ConfigNode node_of(const gestalt_attr& a) {
  auto list = [&](auto* data, auto make) {
    std::vector<ConfigNode> elements;
    for (uint64_t i = 0; i < a.value.list.size; ++i) elements.push_back(make(data[i]));
    return ConfigNode::array(std::move(elements));
  };
  switch (a.kind) {
    case GESTALT_ATTR_I64: return ConfigNode::integer(a.value.i);
    case GESTALT_ATTR_F64: return ConfigNode::real(a.value.f);
    case GESTALT_ATTR_BOOL: return ConfigNode::boolean(a.value.i != 0);
    case GESTALT_ATTR_STR: return ConfigNode::string(std::string(view_of(a.value.s)));
    case GESTALT_ATTR_I64_LIST: return list(static_cast<const int64_t*>(a.value.list.data), ConfigNode::integer);
    case GESTALT_ATTR_F64_LIST: return list(static_cast<const double*>(a.value.list.data), ConfigNode::real);
    case GESTALT_ATTR_STR_LIST:
      return list(static_cast<const gestalt_str*>(a.value.list.data),
                  [](gestalt_str s) { return ConfigNode::string(std::string(view_of(s))); });
    default: fail(GESTALT_INVALID_ARGUMENT, "[{}] configuration kind {} is unknown", view_of(a.name), a.kind);
  }
}

// Keys of [model.slots], the later winning over the earlier: a slot's name; names of slots one below the other
// ("sliding/attention"); a pattern of paths.
enum class SlotKey { kName, kBelow, kPath };

SlotKey kind_of(std::string_view key) {
  if (key.find('/') != std::string_view::npos) return SlotKey::kBelow;
  return key.find_first_of(".*[") != std::string_view::npos ? SlotKey::kPath : SlotKey::kName;
}

// Whether the steps of "a/b/slot" are this slot and, in this order, slots above it.
bool is_below(const std::string& key, const std::vector<std::string>& above, const std::string& slot) {
  std::vector<std::string> steps = split(key, '/');
  if (steps.back() != slot) return false;
  steps.pop_back();
  for (auto it = above.rbegin(); it != above.rend() && !steps.empty(); ++it)
    if (*it == steps.back()) steps.pop_back();
  return steps.empty();
}

template <class F>
gestalt_status* guarded(F f) noexcept {
  try {
    f();
    return nullptr;
  } catch (...) {
    return status_of_current_exception();
  }
}

}  // namespace

// The object behind gestalt_declare while one module declares.
class Declaration {
 public:
  Declaration(ModelTree& tree, ModuleInstance& module, const Mesh& mesh) : tree_(tree), module_(module), mesh_(mesh) {}

  void run() { check(module_.host, module_.table->declare(module_.self, &abi_.declare), module_.path); }

 private:
  struct Abi {
    gestalt_declare declare;
    Declaration* self;
  };
  static Declaration& of(gestalt_declare* d) { return *reinterpret_cast<Abi*>(d)->self; }

  static gestalt_status* child(gestalt_declare* d, gestalt_str slot, gestalt_str name, gestalt_str component,
                               const gestalt_attr* config, uint64_t num, uint64_t* id) noexcept {
    return guarded([&] {
      Declaration& self = of(d);
      const std::string path = self.module_.path + "." + std::string(view_of(name.size ? name : slot));
      for (const auto& c : self.module_.children)
        if (c->path == path) fail(GESTALT_INVALID_ARGUMENT, "[{}] is declared twice", path);
      ConfigNode offered = ConfigNode::table();
      for (uint64_t i = 0; i < num; ++i) offered.insert(view_of(config[i].name), node_of(config[i]));
      const auto chosen = self.tree_.slot_for(path, std::string(view_of(slot)), std::string(view_of(component)));
      *id = self.module_.children.size();
      self.module_.children.push_back(self.tree_.make(path, std::string(view_of(slot)), chosen, offered, self.mesh_));
    });
  }

  static gestalt_status* param(gestalt_declare* d, const gestalt_param_desc* desc, uint64_t* id) noexcept {
    return guarded([&] {
      Declaration& self = of(d);
      *id = self.module_.params.size();
      self.module_.params.push_back(&self.add(*desc, true));
    });
  }

  static gestalt_status* buffer(gestalt_declare* d, const gestalt_param_desc* desc, uint64_t* id) noexcept {
    return guarded([&] {
      Declaration& self = of(d);
      *id = self.module_.buffers.size();
      self.module_.buffers.push_back(&self.add(*desc, false));
    });
  }

  Parameter& add(const gestalt_param_desc& desc, bool trainable) {
    Parameter p;
    p.path = module_.path + "." + std::string(view_of(desc.name));
    if (tree_.find(p.path)) fail(GESTALT_INVALID_ARGUMENT, "[{}] declared twice", p.path);
    if (desc.ndim < 0 || desc.ndim > GESTALT_MAX_NDIM)
      fail(GESTALT_INVALID_ARGUMENT, "[{}] has {} dimensions, expected 0 to {}", p.path, desc.ndim, GESTALT_MAX_NDIM);
    p.global_shape.assign(desc.shape, desc.shape + desc.ndim);
    for (int64_t s : p.global_shape)
      if (s < 0) fail(GESTALT_INVALID_ARGUMENT, "[{}] has a dimension of {}, expected 0 or more", p.path, s);
    p.parts.assign(desc.parts, desc.parts + (desc.parts ? desc.num_parts : 0));
    for (uint64_t i = 0; desc.part_names && i < desc.num_parts; ++i) p.part_names.emplace_back(view_of(desc.part_names[i]));
    if (!p.parts.empty() &&
        (desc.ndim == 0 || std::accumulate(p.parts.begin(), p.parts.end(), int64_t{0}) != p.global_shape[0]))
      fail(GESTALT_INVALID_ARGUMENT, "[{}] parts do not sum to dimension 0", p.path);
    p.init = desc.init;
    p.init_a = desc.init_a;
    p.init_b = desc.init_b;
    p.placement = Placement{desc.shard_axis.size ? desc.shard_dim : -1, std::string(view_of(desc.shard_axis)),
                   std::max<int64_t>(desc.shard_unit, 1)};
    if (p.placement.dim >= desc.ndim)
      fail(GESTALT_INVALID_ARGUMENT, "[{}] is cut along dimension {}, but has {}", p.path, p.placement.dim, desc.ndim);
    p.group = std::string(view_of(desc.group));
    if (p.group.empty()) p.group = desc.ndim >= 2 ? "decay" : "no_decay";
    p.trainable = trainable;
    p.type.dtype = desc.dtype ? desc.dtype : tree_.dtype_;
    dtype_size(p.type.dtype);
    for (int64_t s : local_shape(p.placement, p.global_shape, p.parts, mesh_, p.path))
      p.type.shape[static_cast<size_t>(p.type.ndim++)] = s;
    return tree_.parameters_.emplace_back(std::move(p));
  }

  static gestalt_status* state(gestalt_declare* d, const gestalt_state_desc* desc, uint64_t* id) noexcept {
    return guarded([&] {
      Declaration& self = of(d);
      if (desc->ndim < 0 || desc->ndim >= GESTALT_MAX_NDIM)
        fail(GESTALT_INVALID_ARGUMENT, "[{}] state has {} dimensions", self.module_.path, desc->ndim);
      StateDecl s;
      s.path = self.module_.path + "." + std::string(view_of(desc->name));
      s.scope = desc->scope;
      s.type.dtype = desc->dtype ? desc->dtype : self.tree_.dtype_;
      const Placement placement{desc->shard_axis.size ? desc->shard_dim : -1, std::string(view_of(desc->shard_axis)), 1};
      for (int64_t n : local_shape(placement, {desc->shape, desc->shape + desc->ndim}, {}, self.mesh_, s.path))
        s.type.shape[static_cast<size_t>(s.type.ndim++)] = n;
      s.shard_dim = placement.dim;
      s.shard_axis = placement.axis;
      *id = self.module_.states.size();
      self.module_.states.push_back(&self.tree_.states_.emplace_back(std::move(s)));
    });
  }

  static gestalt_status* tie(gestalt_declare* d, gestalt_str relative, uint64_t* id) noexcept {
    return guarded([&] {
      Declaration& self = of(d);
      const std::string path = self.module_.path + "." + std::string(view_of(relative));
      const Parameter* p = self.tree_.find(path);
      if (!p) {
        std::vector<std::string> names;
        for (const Parameter& q : self.tree_.parameters_) names.push_back(q.path);
        fail(GESTALT_INVALID_ARGUMENT, "[{}] ties '{}', which is not declared yet; nearest: '{}'", self.module_.path, path,
             nearest(path, names));
      }
      *id = self.module_.params.size();
      self.module_.params.push_back(const_cast<Parameter*>(p));
    });
  }

  static gestalt_status* boundary(gestalt_declare* d, uint64_t child) noexcept {
    return guarded([&] {
      Declaration& self = of(d);
      if (child >= self.module_.children.size())
        fail(GESTALT_INVALID_ARGUMENT, "[{}] boundary before child {}, which is not declared", self.module_.path, child);
      self.module_.boundaries.push_back(child);
    });
  }

  static void axis(gestalt_declare* d, gestalt_str name, int64_t* size, int64_t* index) noexcept {
    *size = 1;
    *index = 0;
    for (const Mesh::Axis& a : of(d).mesh_.axes()) {
      if (a.name != view_of(name)) continue;
      *size = a.size;
      *index = a.index;
    }
  }
  static uint32_t dtype(gestalt_declare* d) noexcept { return of(d).tree_.dtype_; }
  static void path(gestalt_declare* d, gestalt_str* out) noexcept { *out = str_of(of(d).module_.path); }

  static constexpr gestalt_declare_api kApi = {sizeof(gestalt_declare_api), child,    param, buffer, state, tie,
                                               boundary,                    axis,     dtype, path};

  ModelTree& tree_;
  ModuleInstance& module_;
  const Mesh& mesh_;
  Abi abi_{{&kApi}, this};
};

ModelTree::ModelTree(const Registry& registry, const Config& config, const Mesh& mesh, uint32_t dtype)
    : registry_(registry), config_(config), mesh_(mesh), dtype_(dtype) {
  const ConfigNode* model = config.find("model");
  if (!model) fail(GESTALT_CONFIG_ERROR, "[model] is missing, expected a section with 'type'");
  root_ = make("model", "model", {config.str("model.type"), nullptr, ""}, *model, mesh_);
  const ConfigNode* slots = config.find("model.slots");
  std::vector<std::string> known;
  auto visit = [&](auto&& self, const ModuleInstance& m) -> void {
    known.push_back(m.slot);
    for (const auto& c : m.children) self(self, *c);
  };
  visit(visit, *root_);
  for (size_t i = 0; slots && i < slots->members().size(); ++i) {
    const ConfigMember& m = slots->members()[i];
    if (used_slots_.contains(m.key)) continue;
    const std::string near = nearest(m.key, known);
    fail(GESTALT_CONFIG_ERROR, "{}: [model.slots] '{}' has no effect: no module of the model has such a slot{}",
         m.value.origin.position(), m.key, near.empty() ? "" : "; nearest: '" + near + "'");
  }
}

ModelTree::Slot ModelTree::slot_for(const std::string& path, const std::string& slot,
                                    const std::string& default_component) {
  const ConfigNode* slots = config_.find("model.slots");
  const ConfigMember* chosen = nullptr;
  for (size_t i = 0; slots && i < slots->members().size(); ++i) {
    const ConfigMember& m = slots->members()[i];
    const SlotKey kind = kind_of(m.key);
    const bool matches = kind == SlotKey::kPath    ? glob_match("model." + m.key, path)
                         : kind == SlotKey::kBelow ? is_below(m.key, slots_above_, slot)
                                                   : m.key == slot;
    if (!matches) continue;
    used_slots_.insert(m.key);
    if (chosen && kind_of(chosen->key) == kind)
      fail(GESTALT_CONFIG_ERROR, "[model.slots] '{}' is claimed twice, by '{}' at {} and by '{}' at {}", path, chosen->key,
           chosen->value.origin.position(), m.key, m.value.origin.position());
    if (!chosen || kind > kind_of(chosen->key)) chosen = &m;
  }
  if (!chosen) return {default_component, nullptr, ""};
  const std::string where = chosen->value.origin.position();
  if (chosen->value.is_string()) return {chosen->value.as_string(), nullptr, where};
  if (!chosen->value.is_table())
    fail(GESTALT_CONFIG_ERROR, "{}: [model.slots] '{}' is a {}, expected a component name or a table", where, chosen->key,
         chosen->value.kind_name());
  const ConfigNode* type = chosen->value.find("type");
  return {type && type->is_string() ? type->as_string() : default_component, &chosen->value, where};
}

std::unique_ptr<ModuleInstance> ModelTree::make(const std::string& path, const std::string& slot, const Slot& chosen,
                                                const ConfigNode& offered, const Mesh& mesh) {
  const ComponentRef component = registry_.component("module/1", chosen.component);
  std::vector<KeySpec> keys;
  for (uint64_t i = 0; i < component.component->num_keys; ++i) keys.push_back(key_spec(component.component->keys[i]));
  auto knows = [&](std::string_view name) {
    return std::any_of(keys.begin(), keys.end(), [&](const KeySpec& k) {
      return k.name == name || (k.name.size() > name.size() && k.name.compare(0, name.size(), name) == 0 &&
                                (k.name[name.size()] == '.' || k.name[name.size()] == '['));
    });
  };
  // The module's own table: what the parent offers and the module knows, then what the slot's table says.
  ConfigNode own = ConfigNode::table();
  for (const ConfigMember& m : offered.members())
    if (knows(m.key)) own.insert(m.key, m.value);
  if (chosen.config)
    for (const ConfigMember& m : chosen.config->members())
      if (m.key != "type") own.insert(m.key, m.value);
  Config checked = Config::from_text("", path);
  checked.root().insert("module", std::move(own));
  ConfigSchema schema;
  schema.extend("module", chosen.component, keys);
  try {
    check(checked, schema);
  } catch (const Error& e) {
    throw Error(e.code(), fmt::format("[{} ({})] {}", path, chosen.component, e.message()));
  }
  const ConfigNode* complete = checked.find("module");
  const AttrList attrs = to_attrs(complete ? *complete : ConfigNode::table());

  auto module = std::make_unique<ModuleInstance>();
  module->path = path;
  module->slot = slot;
  module->component = chosen.component;
  auto instance = std::make_shared<Instance>(component, attrs.data(), attrs.size());
  module->table = instance->table<gestalt_module_1>();
  module->self = instance->self();
  module->host = component.host;
  module->owner = instance;
  slots_above_.push_back(slot);
  Declaration(*this, *module, mesh).run();
  slots_above_.pop_back();
  return module;
}

std::vector<const Parameter*> ModelTree::parameters() const {
  std::vector<const Parameter*> v;
  for (const Parameter& p : parameters_) v.push_back(&p);
  return v;
}

const Parameter* ModelTree::find(std::string_view path) const {
  for (const Parameter& p : parameters_)
    if (p.path == path) return &p;
  return nullptr;
}

int64_t ModelTree::num_parameters() const {
  int64_t n = 0;
  for (const Parameter& p : parameters_)
    if (p.trainable)
      n += std::accumulate(p.global_shape.begin(), p.global_shape.end(), int64_t{1}, std::multiplies<>());
  return n;
}

std::string ModelTree::text() const {
  std::string out;
  auto visit = [&](auto&& self, const ModuleInstance& m) -> void {
    out += fmt::format("{:<48} {}\n", m.path, m.component);
    for (const auto& c : m.children) self(self, *c);
  };
  visit(visit, *root_);
  return out;
}

}  // namespace gestalt::core
