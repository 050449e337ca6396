#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/plugin/loader.h"

namespace gestalt::core {

// A kernel with the plugin that brought it.
struct KernelRef {
  const gestalt_kernel* kernel;
  std::string_view plugin;
  const gestalt_host* host;
};
struct OpRef {
  const gestalt_op* op;
  std::string_view plugin;
  const gestalt_host* host;
};
struct ComponentRef {
  const gestalt_component* component = nullptr;
  std::string_view plugin;
  const gestalt_host* host = nullptr;
  explicit operator bool() const { return component != nullptr; }
};

// The search path of plugin folders: beside the executable (<executable>/../lib/gestalt/plugins), then
// GESTALT_PLUGIN_PATH (not under trust 'locked'), then `configured` ([plugins] search, already made absolute). Never
// the current folder: a relative entry of the environment is an error.
std::vector<std::filesystem::path> plugin_search(const std::vector<std::filesystem::path>& configured, Trust trust);

// All plugins of the process and what they provide. [setup] Plugins are found by their manifests and do nothing until
// load names them.
class Registry {
 public:
  struct Found {
    Manifest manifest;
    std::filesystem::path folder;
  };
  struct Unreadable {
    std::filesystem::path folder;
    std::string reason;
  };

  Registry() = default;
  Registry(const Registry&) = delete;
  ~Registry() = default;

  // Reads FOLDER/plugin.toml one level below each search path. What cannot be read is noted, and an error only for
  // whoever names it.
  void discover(const std::vector<std::filesystem::path>& search);
  const std::vector<std::filesystem::path>& searched() const { return searched_; }
  const std::vector<Found>& found() const { return found_; }  // by search path, then by id
  const std::vector<Unreadable>& unreadable() const { return unreadable_; }
  // The manifest of an id. Throws CONFIG_ERROR when it is missing (with the paths searched and the nearest id) or found
  // in two places.
  const Found& find(std::string_view id) const;

  // Loads the named plugins in order; a name that is loaded already is skipped. `lock` is needed under trust 'locked'.
  void load(const std::vector<std::string>& ids, Trust trust = Trust::kNamed, const Lock* lock = nullptr);
  // Registers a plugin that is part of this process.
  void add_static(const gestalt_plugin* plugin);

  const std::vector<Plugin>& plugins() const { return plugins_; }  // in load order
  const Plugin* plugin(std::string_view id) const;
  // Id, version and hash of every loaded plugin that has a file.
  Lock lock() const;

  // Kernels of an op for a device, in load order.
  std::vector<KernelRef> find_kernels(std::string_view op, std::string_view device) const;
  const std::vector<OpRef>& ops() const { return ops_; }
  const std::vector<KernelRef>& kernels() const { return kernels_; }
  // An empty reference when there is none.
  ComponentRef find_component(std::string_view kind, std::string_view name) const;
  // As find_component, but an Error that names the nearest component, or the plugin found on disk that has it.
  ComponentRef component(std::string_view kind, std::string_view name) const;
  // Names of the loaded components of a kind, sorted.
  std::vector<std::string> component_names(std::string_view kind) const;
  // Configuration keys out of the manifests of `ids`, before anything loads; NULL when none of them has the component.
  const ComponentEntry* component_entry(const std::vector<std::string>& ids, std::string_view kind,
                                        std::string_view name) const;

  // Calls the plugins' shutdown in reverse load order, once. Before main returns, never from a destructor.
  void shutdown();

 private:
  // All checks first, so that a refused plugin leaves nothing behind.
  void add(Plugin plugin);

  std::vector<std::filesystem::path> searched_;
  std::vector<Found> found_;
  std::vector<Unreadable> unreadable_;
  std::vector<Plugin> plugins_;
  std::vector<OpRef> ops_;
  std::vector<KernelRef> kernels_;
  std::map<std::pair<std::string, std::string>, ComponentRef> components_;  // by kind, name
  bool shut_down_ = false;
};

// A component's state: created here, destroyed at the end.
class Instance {
 public:
  Instance() = default;
  // config: checked and completed by the schema, sorted by name.
  Instance(const ComponentRef& component, const gestalt_attr* config, uint64_t num);
  Instance(Instance&& other) noexcept;
  Instance& operator=(Instance&& other) noexcept;
  ~Instance();

  explicit operator bool() const { return bool(component_); }
  void* self() const { return self_; }
  const ComponentRef& component() const { return component_; }
  template <class Table>
  const Table* table() const {
    return static_cast<const Table*>(component_.component->table);
  }
  // For `check`: "tokenizer/1 'gestalt.byte' of plugin 'gestalt.tokenizer_byte'".
  std::string text() const;

 private:
  ComponentRef component_;
  void* self_ = nullptr;
};

}  // namespace gestalt::core
