#include "core/plugin/registry.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "core/base/host.h"
#include "core/base/text.h"
#include "core/plugin/descriptor.h"

namespace gestalt::core {

namespace {

namespace fs = std::filesystem;

std::string_view first_part(std::string_view dotted) { return dotted.substr(0, dotted.find('.')); }

// "acme.kernels" may define acme.* ops; core.* and gestalt.* belong to the ids of gestalt.*.
bool owns_namespace(std::string_view id, std::string_view op) {
  const std::string_view space = first_part(op), owner = first_part(id);
  return space == owner || (space == "core" && owner == "gestalt");
}

std::string_view op_name(const gestalt_op& op) {
  const std::string_view schema = view_of(op.schema);
  return schema.substr(0, schema.find('('));
}

std::string paths_text(const std::vector<fs::path>& paths) {
  std::vector<std::string> names;
  for (const fs::path& p : paths) names.push_back(p.native());
  return names.empty() ? "nowhere" : join(names, ", ");
}

}  // namespace

std::vector<fs::path> plugin_search(const std::vector<fs::path>& configured, Trust trust) {
  std::vector<fs::path> search = {fs::read_symlink("/proc/self/exe").parent_path().parent_path() /
                                  "lib/gestalt/plugins"};
  const char* environment = std::getenv("GESTALT_PLUGIN_PATH");
  if (environment && trust != Trust::kLocked) {
    for (const std::string& entry : split(environment, ':')) {
      if (entry.empty()) continue;
      if (!fs::path(entry).is_absolute())
        fail(GESTALT_CONFIG_ERROR,
             "[GESTALT_PLUGIN_PATH] relative path, got '{}', expected absolute paths joined by ':'", entry);
      search.emplace_back(entry);
    }
  }
  search.insert(search.end(), configured.begin(), configured.end());
  return search;
}

void Registry::discover(const std::vector<fs::path>& search) {
  for (const fs::path& path : search) {
    if (!path.is_absolute())
      fail(GESTALT_CONFIG_ERROR, "[plugins.search] relative path, got '{}', expected an absolute one", path.native());
    const fs::path normal = path.lexically_normal();
    if (std::find(searched_.begin(), searched_.end(), normal) != searched_.end()) continue;
    searched_.push_back(normal);
    std::vector<fs::path> folders;
    std::error_code error;
    for (fs::directory_iterator it(normal, error), end; !error && it != end; it.increment(error)) {
      std::error_code ignored;
      if (fs::exists(fs::symlink_status(it->path() / "plugin.toml", ignored))) folders.push_back(it->path());
    }
    std::sort(folders.begin(), folders.end());
    const auto first = static_cast<std::ptrdiff_t>(found_.size());
    for (const fs::path& folder : folders) {
      try {
        found_.push_back({read_manifest(folder), folder});
      } catch (const Error& e) {
        unreadable_.push_back({folder, e.message()});
      }
    }
    std::stable_sort(found_.begin() + first, found_.end(),
                     [](const Found& a, const Found& b) { return a.manifest.id < b.manifest.id; });
  }
}

const Registry::Found& Registry::find(std::string_view id) const {
  const Found* result = nullptr;
  for (const Found& f : found_) {
    if (f.manifest.id != id) continue;
    if (result && !fs::equivalent(result->folder, f.folder))
      fail(GESTALT_CONFIG_ERROR, "plugin '{}': step 'search': file {}: the same id is also in {}; remove one", id,
           (result->folder / "plugin.toml").native(), (f.folder / "plugin.toml").native());
    if (!result) result = &f;
  }
  if (result) return *result;
  std::vector<std::string> ids;
  for (const Found& f : found_) ids.push_back(f.manifest.id);
  std::string reason = "not found";
  if (const std::string near = nearest(id, ids); !near.empty()) reason += fmt::format("; did you mean '{}'?", near);
  for (const Unreadable& u : unreadable_) reason += fmt::format("; unreadable: {}", u.reason);
  fail(GESTALT_CONFIG_ERROR, "plugin '{}': step 'search': file */plugin.toml in {}: {}", id, paths_text(searched_),
       reason);
}

void Registry::load(const std::vector<std::string>& ids, Trust trust, const Lock* lock) {
  for (const std::string& id : ids) {
    if (plugin(id)) continue;
    Plugin loaded = load_plugin(find(id).folder, trust, lock);
    // The manifest was read again since discovery; what was asked for must be what came.
    if (loaded.manifest.id != id)
      fail(GESTALT_CONFIG_ERROR, "plugin '{}': step 'register': file {}: changed to '{}' while it was being loaded", id,
           (loaded.folder / "plugin.toml").native(), loaded.manifest.id);
    add(std::move(loaded));
  }
}

void Registry::add_static(const gestalt_plugin* descriptor) {
  check_descriptor(descriptor);
  Plugin p;
  p.manifest = describe(*descriptor);
  p.descriptor = descriptor;
  p.host = make_host(p.manifest.id);
  add(std::move(p));
}

void Registry::add(Plugin p) {
  const Manifest& m = p.manifest;
  const std::string file = p.folder.empty() ? "of this process" : (p.folder / m.library).native();
  auto refuse = [&](const std::string& reason) {
    fail(GESTALT_CONFIG_ERROR, "plugin '{}': step 'register': file {}: {}", m.id, file, reason);
  };
  if (plugin(m.id)) refuse("a plugin with this id is loaded already");
  const gestalt_plugin& d = *p.descriptor;
  for (uint64_t i = 0; i < d.num_ops; ++i) {
    const std::string_view name = op_name(*d.ops[i]);
    if (!owns_namespace(m.id, name))
      refuse(fmt::format("it defines op '{}', but only plugins '{}.*' may define ops '{}.*'", name,
                         first_part(name) == "core" ? "gestalt" : first_part(name), first_part(name)));
    for (const OpRef& other : ops_)
      if (op_name(*other.op) == name)
        refuse(fmt::format("op '{}' is defined by plugin '{}' already", name, other.plugin));
  }
  for (uint64_t i = 0; i < d.num_kernels; ++i) {
    const gestalt_kernel& k = *d.kernels[i];
    for (const KernelRef& other : kernels_)
      if (view_of(k.op) == view_of(other.kernel->op) && view_of(k.device) == view_of(other.kernel->device) &&
          view_of(k.backend) == view_of(other.kernel->backend))
        refuse(fmt::format("kernel of '{}' on '{}' by backend '{}' is provided by plugin '{}' already", view_of(k.op),
                           view_of(k.device), view_of(k.backend), other.plugin));
  }
  for (uint64_t i = 0; i < d.num_components; ++i) {
    const gestalt_component& c = *d.components[i];
    if (ComponentRef other = find_component(view_of(c.kind), view_of(c.name)))
      refuse(fmt::format("{} '{}' is provided by plugin '{}' already", view_of(c.kind), view_of(c.name), other.plugin));
  }
  // Names stay valid: the descriptor's strings live as long as the process.
  const std::string_view id = view_of(d.id);
  for (uint64_t i = 0; i < d.num_ops; ++i) ops_.push_back({d.ops[i], id, p.host});
  for (uint64_t i = 0; i < d.num_kernels; ++i) kernels_.push_back({d.kernels[i], id, p.host});
  for (uint64_t i = 0; i < d.num_components; ++i) {
    const gestalt_component& c = *d.components[i];
    components_[{std::string(view_of(c.kind)), std::string(view_of(c.name))}] = {&c, id, p.host};
  }
  plugins_.push_back(std::move(p));
}

const Plugin* Registry::plugin(std::string_view id) const {
  for (const Plugin& p : plugins_)
    if (p.manifest.id == id) return &p;
  return nullptr;
}

Lock Registry::lock() const {
  Lock out;
  for (const Plugin& p : plugins_)
    if (!p.folder.empty()) out.plugins.push_back({p.manifest.id, p.manifest.version, p.manifest.sha256});
  std::sort(out.plugins.begin(), out.plugins.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return out;
}

std::vector<KernelRef> Registry::find_kernels(std::string_view op, std::string_view device) const {
  std::vector<KernelRef> out;
  for (const KernelRef& k : kernels_)
    if (view_of(k.kernel->op) == op && view_of(k.kernel->device) == device) out.push_back(k);
  return out;
}

ComponentRef Registry::find_component(std::string_view kind, std::string_view name) const {
  auto it = components_.find({std::string(kind), std::string(name)});
  return it == components_.end() ? ComponentRef{} : it->second;
}

ComponentRef Registry::component(std::string_view kind, std::string_view name) const {
  if (ComponentRef ref = find_component(kind, name)) return ref;
  std::string hint;
  if (const std::string near = nearest(name, component_names(kind)); !near.empty())
    hint = fmt::format("; did you mean '{}'?", near);
  for (const Found& f : found_)
    if (f.manifest.component(kind, name))
      hint = fmt::format("; plugin '{}' provides it: add it to [plugins] use", f.manifest.id);
  const std::vector<std::string> names = component_names(kind);
  fail(GESTALT_CONFIG_ERROR, "[{}] no loaded plugin provides it, got '{}', expected {}{}", kind, name,
       names.empty() ? "a component that a plugin provides" : join(names, ", "), hint);
}

std::vector<std::string> Registry::component_names(std::string_view kind) const {
  std::vector<std::string> names;
  for (const auto& [key, ref] : components_)
    if (key.first == kind) names.push_back(key.second);
  return names;
}

const ComponentEntry* Registry::component_entry(const std::vector<std::string>& ids, std::string_view kind,
                                                std::string_view name) const {
  for (const std::string& id : ids) {
    const Plugin* loaded = plugin(id);
    const Manifest& manifest = loaded ? loaded->manifest : find(id).manifest;
    if (const ComponentEntry* entry = manifest.component(kind, name)) return entry;
  }
  return nullptr;
}

void Registry::shutdown() {
  if (std::exchange(shut_down_, true)) return;
  for (auto it = plugins_.rbegin(); it != plugins_.rend(); ++it)
    if (it->descriptor->shutdown) it->descriptor->shutdown();
}

Instance::Instance(const ComponentRef& component, const gestalt_attr* config, uint64_t num) : component_(component) {
  gestalt_status* status = component_.component->create(component_.host, config, num, &self_);
  if (!status) return;
  const Error e = take(status);
  fail(e.code(), "[{}] {}", text(), e.message());
}

Instance::Instance(Instance&& other) noexcept
    : component_(std::exchange(other.component_, {})), self_(std::exchange(other.self_, nullptr)) {}

Instance& Instance::operator=(Instance&& other) noexcept {
  std::swap(component_, other.component_);
  std::swap(self_, other.self_);
  return *this;
}

Instance::~Instance() {
  if (component_) component_.component->destroy(self_);
}

std::string Instance::text() const {
  return fmt::format("{} '{}' of plugin '{}'", view_of(component_.component->kind), view_of(component_.component->name),
                     component_.plugin);
}

}  // namespace gestalt::core
