// gestalt plugin list|show|pack|lock|doctor. All but pack and doctor read manifests only.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/base/host.h"
#include "core/base/text.h"
#include "core/plugin/flags.h"
#include "core/plugin/registry.h"
#include "launcher/options.h"

namespace gestalt::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using core::Manifest;
using core::Registry;

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

void print(const Json& json) { print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"); }

void add_search(Options& options) {
  options.add()("search", po::value<Arguments>()->composing(), "a folder of plugin folders, besides the standard ones");
}

void discover(Registry& registry, const Options& options) {
  std::vector<fs::path> configured;
  for (const std::string& s : options.list("search")) configured.push_back(fs::absolute(s));
  registry.discover(core::plugin_search(configured, core::Trust::kNamed));
}

Json json_of(const core::KeySpec& key) {
  Json out{{"name", key.name}, {"type", key.type}, {"required", key.required}};
  for (auto [name, value] : {std::pair{"default", &key.default_value},
                             {"min", &key.min},
                             {"max", &key.max},
                             {"choices", &key.choices},
                             {"when", &key.when},
                             {"doc", &key.doc}})
    if (!value->empty()) out[name] = *value;
  return out;
}

Json json_of(const Manifest& m, const fs::path& folder) {
  Json out{{"id", m.id},
           {"version", m.version},
           {"publisher", m.publisher},
           {"license", m.license},
           {"description", m.description},
           {"folder", folder.native()},
           {"library", (folder / m.library).native()},
           {"sha256", m.sha256},
           {"abi", {{"major", m.abi_major}, {"min_minor", m.min_minor}}}};
  out["needs"] = Json::object();
  for (const core::Need& n : m.needs) out["needs"][n.name] = n.range.empty() ? Json(n.list) : Json(n.range);
  out["ops"] = m.ops;
  out["kernels"] = Json::array();
  for (const core::KernelEntry& k : m.kernels)
    out["kernels"].push_back(
        {{"op", k.op}, {"device", k.device}, {"backend", k.backend}, {"flags", core::kernel_flag_list(k.flags)}});
  out["components"] = Json::array();
  for (const core::ComponentEntry& c : m.components) {
    Json component{{"kind", c.kind}, {"name", c.name}, {"keys", Json::array()}};
    for (const core::KeySpec& key : c.keys) component["keys"].push_back(json_of(key));
    out["components"].push_back(std::move(component));
  }
  return out;
}

Json json_of(const std::vector<fs::path>& paths) {
  Json out = Json::array();
  for (const fs::path& p : paths) out.push_back(p.native());
  return out;
}

Json json_of(const std::vector<Registry::Unreadable>& unreadable) {
  Json out = Json::array();
  for (const auto& u : unreadable) out.push_back({{"folder", u.folder.native()}, {"reason", u.reason}});
  return out;
}

// Text of a manifest is foreign: it must not drive the terminal.
std::string safe(std::string_view text) { return core::escape_controls(text); }

std::string text_of(const Manifest& m, const fs::path& folder) {
  std::string out = fmt::format("{} {}  {}\n", m.id, safe(m.version), safe(m.description));
  out += fmt::format("  library    {}\n  sha256     {}\n  ABI        {}.{}\n", safe((folder / m.library).native()),
                     m.sha256, m.abi_major, m.min_minor);
  if (!m.publisher.empty()) out += fmt::format("  publisher  {}\n", safe(m.publisher));
  if (!m.license.empty()) out += fmt::format("  license    {}\n", safe(m.license));
  for (const core::Need& n : m.needs)
    out +=
        fmt::format("  needs      {} {}\n", safe(n.name), safe(n.range.empty() ? core::join(n.list, ", ") : n.range));
  for (const std::string& schema : m.ops) out += fmt::format("  op         {}\n", safe(schema));
  for (const core::KernelEntry& k : m.kernels)
    out += fmt::format("  kernel     {} on {} by {} [{}]\n", safe(k.op), safe(k.device), safe(k.backend),
                       core::join(core::kernel_flag_list(k.flags), ", "));
  for (const core::ComponentEntry& c : m.components) {
    out += fmt::format("  {:<10} {}\n", safe(c.kind), safe(c.name));
    for (const core::KeySpec& key : c.keys) {
      out += fmt::format("    {} : {}", safe(key.name), safe(key.type));
      if (!key.default_value.empty()) out += " = " + safe(key.default_value);
      if (key.required) out += " (required)";
      out += key.doc.empty() ? "\n" : fmt::format("  {}\n", safe(key.doc));
    }
  }
  return out;
}

int run_list(Options& options) {
  Registry registry;
  discover(registry, options);
  if (options.has("json")) {
    Json plugins = Json::array();
    for (const auto& f : registry.found()) plugins.push_back(json_of(f.manifest, f.folder));
    print(Json{{"searched", json_of(registry.searched())},
               {"plugins", std::move(plugins)},
               {"unreadable", json_of(registry.unreadable())}});
    return 0;
  }
  std::string text;
  for (const auto& f : registry.found()) {
    const Manifest& m = f.manifest;
    text += fmt::format("{:<28} {:<10} {} ops, {} kernels, {} components  {}\n", m.id, safe(m.version), m.ops.size(),
                        m.kernels.size(), m.components.size(), safe(m.description));
  }
  print(text);
  for (const auto& u : registry.unreadable())
    std::fputs(fmt::format("unreadable: {}\n", safe(u.reason)).c_str(), stderr);
  return 0;
}

int run_show(Options& options) {
  if (!options.has("id")) throw UsageError("no plugin id given");
  Registry registry;
  discover(registry, options);
  const Registry::Found& f = registry.find(options.text("id"));
  options.has("json") ? print(json_of(f.manifest, f.folder)) : print(text_of(f.manifest, f.folder));
  return 0;
}

int run_pack(Options& options) {
  if (!options.has("library")) throw UsageError("no library given");
  const fs::path library = options.text("library");
  const fs::path out = options.has("out") ? fs::path(options.text("out")) : library.parent_path() / "plugin.toml";
  core::pack(library, options.text("authored"), out);
  if (options.has("json")) print(Json{{"manifest", fs::absolute(out).native()}});
  return 0;
}

// The lock entries of the named plugins, or of all that were found.
core::Lock make_lock(const Registry& registry, Arguments ids) {
  if (ids.empty())
    for (const auto& f : registry.found()) ids.push_back(f.manifest.id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  core::Lock lock;
  for (const std::string& id : ids) {
    const Manifest& m = registry.find(id).manifest;
    lock.plugins.push_back({m.id, m.version, m.sha256});
  }
  return lock;
}

// What differs between a lock file and the manifests on disk.
std::vector<std::string> differences(const core::Lock& lock, const Registry& registry) {
  std::vector<std::string> out;
  for (const core::LockEntry& e : lock.plugins) {
    const auto it = std::find_if(registry.found().begin(), registry.found().end(),
                                 [&](const auto& f) { return f.manifest.id == e.id; });
    if (it == registry.found().end())
      out.push_back(fmt::format("plugin '{}' is locked but not found", e.id));
    else if (it->manifest.version != e.version || it->manifest.sha256 != e.sha256)
      out.push_back(fmt::format("plugin '{}' is locked as version {} with hash {}, found version {} with hash {}", e.id,
                                e.version, e.sha256, it->manifest.version, it->manifest.sha256));
  }
  return out;
}

int run_lock(Options& options) {
  Registry registry;
  discover(registry, options);
  if (options.has("verify")) {
    const std::vector<std::string> found = differences(core::read_lock(options.text("verify")), registry);
    if (options.has("json")) print(Json{{"equal", found.empty()}, {"differences", found}});
    if (!found.empty()) core::fail(GESTALT_CONFIG_ERROR, "[plugin lock] {}", core::join(found, "; "));
    return 0;
  }
  const core::Lock lock = make_lock(registry, options.list("id"));
  core::write_file_atomic(options.text("out"), core::to_toml(lock));
  if (options.has("json")) print(Json{{"lock", options.text("out")}, {"plugins", lock.plugins.size()}});
  return 0;
}

struct Diagnosis {
  std::string id, problem, needed, exports, glibc, build;
};

// Loads the plugin as a run would, and says how far it came.
Diagnosis diagnose(Registry& registry, const std::string& id) {
  Diagnosis d;
  d.id = id;
  try {
    const Registry::Found& f = registry.find(id);
    try {
      const core::ElfFile elf = core::parse_elf(core::read_file(f.folder / f.manifest.library, uint64_t{4} << 30));
      d.needed = core::join(elf.needed, ", ");
      d.glibc = elf.glibc;
      for (int major : elf.abi_majors()) d.exports += fmt::format("{}{}", d.exports.empty() ? "" : ", ", major);
    } catch (const core::Error&) {
      // load says what is wrong with the file, and at which step
    }
    registry.load({id});
    d.build = std::string(core::view_of(registry.plugin(id)->descriptor->build));
  } catch (const core::Error& e) {
    d.problem = e.message();
  }
  return d;
}

int run_doctor(Options& options) {
  Registry registry;
  discover(registry, options);
  Arguments ids = options.list("id");
  if (ids.empty())
    for (const auto& f : registry.found()) ids.push_back(f.manifest.id);
  const std::string host_abi = fmt::format("{}.{}", GESTALT_ABI_MAJOR, GESTALT_ABI_MINOR);
  Json results = Json::array();
  std::string text = fmt::format("host ABI {}\n", host_abi);
  for (const fs::path& p : registry.searched()) text += fmt::format("searched   {}\n", safe(p.native()));
  for (const auto& u : registry.unreadable()) text += fmt::format("unreadable {}\n", safe(u.reason));
  bool all_well = true;
  for (const std::string& id : ids) {
    const Diagnosis d = diagnose(registry, id);
    all_well = all_well && d.problem.empty();
    results.push_back({{"id", d.id},
                       {"ok", d.problem.empty()},
                       {"problem", d.problem},
                       {"abi_majors", d.exports},
                       {"needed", d.needed},
                       {"glibc", d.glibc},
                       {"build", d.build}});
    text += fmt::format("{} {}\n  ABI majors {}\n  libraries  {}\n  glibc      {}\n", safe(id),
                        d.problem.empty() ? "loads" : "is refused", d.exports, safe(d.needed), d.glibc);
    text += d.problem.empty() ? fmt::format("  build      {}\n", safe(d.build))
                              : fmt::format("  problem    {}\n", safe(d.problem));
  }
  registry.shutdown();
  if (options.has("json"))
    print(Json{{"host_abi", host_abi},
               {"searched", json_of(registry.searched())},
               {"unreadable", json_of(registry.unreadable())},
               {"plugins", std::move(results)}});
  else
    print(text);
  return all_well ? 0 : core::exit_code(GESTALT_CONFIG_ERROR);
}

struct Command {
  std::string_view name;
  const char* usage;
  void (*options)(Options&);
  int (*run)(Options&);
};

constexpr Command kCommands[] = {
    {"list", "gestalt plugin list [--search DIR]... [--json]", [](Options& o) { add_search(o); }, run_list},
    {"show", "gestalt plugin show ID [--search DIR]... [--json]",
     [](Options& o) {
       add_search(o);
       o.add()("id", po::value<std::string>(), "the plugin's id");
       o.positional("id", 1);
     },
     run_show},
    {"pack", "gestalt plugin pack LIBRARY [--authored FILE] [--out FILE] [--json]",
     [](Options& o) {
       o.add()("library", po::value<std::string>(), "the plugin's shared library")(
           "authored", po::value<std::string>(), "TOML with publisher, license, description, [needs]")(
           "out", po::value<std::string>(), "manifest to write; default: plugin.toml beside the library");
       o.positional("library", 1);
     },
     run_pack},
    {"lock", "gestalt plugin lock [ID]... [--out FILE | --verify FILE] [--search DIR]... [--json]",
     [](Options& o) {
       add_search(o);
       o.add()("id", po::value<Arguments>(), "plugins to lock; default: all that are found")(
           "out", po::value<std::string>()->default_value("plugins.lock.toml"), "lock file to write")(
           "verify", po::value<std::string>(), "compare a lock file with the plugins found instead");
       o.positional("id", -1);
     },
     run_lock},
    {"doctor", "gestalt plugin doctor [ID]... [--search DIR]... [--json]",
     [](Options& o) {
       add_search(o);
       o.add()("id", po::value<Arguments>(), "plugins to load; default: all that are found");
       o.positional("id", -1);
     },
     run_doctor},
};

constexpr const char* kUsage = "gestalt plugin list|show|pack|lock|doctor ...";

int run_plugin(const Arguments& arguments) {
  std::vector<std::string> names;
  for (const Command& c : kCommands) names.emplace_back(c.name);
  if (arguments.empty()) throw UsageError(fmt::format("no plugin command given, expected {}", core::join(names, ", ")));
  if (arguments[0] == "--help") {
    std::string text;
    for (const Command& c : kCommands) text += fmt::format("{}\n", c.usage);
    print(text);
    return 0;
  }
  for (const Command& c : kCommands) {
    if (c.name != arguments[0]) continue;
    Options options(c.usage);
    options.add()("json", "print one JSON object");
    c.options(options);
    return options.parse(Arguments(arguments.begin() + 1, arguments.end())) ? c.run(options) : 0;
  }
  const std::string near = core::nearest(arguments[0], names);
  throw UsageError(fmt::format("unknown plugin command, got '{}', expected {}{}", safe(arguments[0]),
                               core::join(names, ", "), near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

const Verb kPlugin("plugin", kUsage, "plugins on disk: list, show, pack, lock, doctor", run_plugin);

}  // namespace
}  // namespace gestalt::launcher
