#include "core/plugin/manifest.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

#include "core/base/host.h"
#include "core/base/text.h"
#include "core/config/toml_reader.h"
#include "core/plugin/confined_file.h"
#include "core/plugin/flags.h"
#include "core/plugin/strict_table.h"

namespace gestalt::core {

namespace {

constexpr uint64_t kMaxManifestBytes = 4 << 20;
constexpr TomlLimits kLimits{.file_bytes = kMaxManifestBytes, .string_bytes = 1 << 16};

std::string literal(std::string_view text, const std::string& what) {
  return text.empty() ? std::string() : read_toml_value(text, what).text();
}

KeySpec parse_key(const std::string& name, const ConfigNode& node, std::string_view owner) {
  StrictTable table(node, "config." + name);
  KeySpec spec;
  spec.name = name;
  spec.type = table.string("type");
  // Any value: kept as its TOML text.
  for (auto [key, out] : {std::pair{"default", &spec.default_value}, {"min", &spec.min}, {"max", &spec.max}})
    if (const ConfigNode* value = table.optional(key)) *out = value->text();
  spec.choices = table.string("choices", "");
  spec.when = table.string("when", "");
  spec.doc = table.string("doc", "");
  spec.required = table.boolean("required", false);
  table.finish();
  try {
    check_key_spec(spec, owner);
  } catch (const Error& e) {
    table.refuse(node, e.message());
  }
  return spec;
}

Need parse_need(const ConfigMember& member, const StrictTable& table) {
  Need need{member.key, "", {}};
  if (member.value.is_string()) {
    need.range = member.value.as_string();
    try {
      version_in_range("0", need.range);
    } catch (const Error& e) {
      table.refuse(member.value, e.message());
    }
  } else if (member.value.is_array()) {
    for (const ConfigNode& e : member.value.elements()) {
      if (!e.is_string())
        table.refuse(e, fmt::format("need '{}': expected strings, got a {}", member.key, e.kind_name()));
      need.list.push_back(e.as_string());
    }
  } else {
    table.refuse(member.value,
                 fmt::format("need '{}': expected a version range as \">=2.34,<3\" or a list of strings, got {}",
                             member.key, member.value.text()));
  }
  return need;
}

std::vector<Need> parse_needs(const ConfigNode* node, std::string_view path) {
  std::vector<Need> needs;
  if (!node) return needs;
  const StrictTable table(*node, std::string(path));
  for (const ConfigMember& member : node->members()) needs.push_back(parse_need(member, table));
  return needs;
}

void parse_component(const ConfigNode& node, Manifest& m) {
  StrictTable table(node, "provides.component");
  ComponentEntry entry;
  entry.kind = table.string("kind");
  entry.name = table.string("name");
  if (m.component(entry.kind, entry.name))
    table.refuse(node, fmt::format("{} '{}' is listed twice", entry.kind, entry.name));
  if (const ConfigNode* config = table.optional("config")) {
    const StrictTable keys(*config, "provides.component.config");
    for (const ConfigMember& member : config->members())
      entry.keys.push_back(parse_key(member.key, member.value, entry.name));
  }
  std::sort(entry.keys.begin(), entry.keys.end(), [](const KeySpec& a, const KeySpec& b) { return a.name < b.name; });
  table.finish();
  m.components.push_back(std::move(entry));
}

void parse_provides(const ConfigNode& node, Manifest& m) {
  StrictTable provides(node, "provides");
  for (const ConfigNode& op : provides.tables("op")) {
    StrictTable table(op, "provides.op");
    m.ops.push_back(table.string("schema"));
    table.finish();
  }
  std::set<std::string> seen;
  for (const ConfigNode& kernel : provides.tables("kernel")) {
    StrictTable table(kernel, "provides.kernel");
    KernelEntry entry{table.string("op"), table.string("device"), table.string("backend"), 0};
    for (const std::string& flag : table.strings("flags"))
      if (const auto bit = parse_kernel_flag(flag))
        entry.flags |= *bit;
      else
        table.refuse(kernel, fmt::format("flags: unknown flag, got '{}', expected {}", flag, kernel_flag_names()));
    table.finish();
    if (!seen.insert(fmt::format("{} {} {}", entry.op, entry.device, entry.backend)).second)
      table.refuse(
          kernel, fmt::format("kernel of '{}' on '{}' by '{}' is listed twice", entry.op, entry.device, entry.backend));
    m.kernels.push_back(std::move(entry));
  }
  for (const ConfigNode& component : provides.tables("component")) parse_component(component, m);
  provides.finish();
}

void parse_library(const ConfigNode& node, Manifest& m) {
  StrictTable libraries(node, "library");
  for (const ConfigMember& member : node.members()) {
    const bool ours = member.key == kPlatform;
    StrictTable table(member.value, "library." + member.key);
    const std::string path = table.string("path"), hash = table.string("sha256");
    const bool hex = hash.size() == 64 && hash.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!hex)
      table.refuse(member.value, fmt::format("sha256: expected 64 lower-case hexadecimal digits, got '{}'", hash));
    const std::vector<Need> needs = parse_needs(table.optional("needs"), "needs");
    table.finish();
    if (!ours) continue;
    m.library = path;
    m.sha256 = hash;
    m.needs = needs;
  }
  if (m.library.empty())
    libraries.refuse(node,
                     fmt::format("no section [library.{}]: the plugin is not built for this platform", kPlatform));
}

// The keys that manifests and their hand-written part share.
void parse_identity(StrictTable& top, Authored& a) {
  a.publisher = top.string("publisher", "");
  a.license = top.string("license", "");
  a.description = top.string("description", "");
}

}  // namespace

const ComponentEntry* Manifest::component(std::string_view kind, std::string_view name) const {
  for (const ComponentEntry& c : components)
    if (c.kind == kind && c.name == name) return &c;
  return nullptr;
}

Manifest parse_manifest(std::string_view text, const std::string& name) {
  const ConfigNode root = read_toml_text(text, name, kLimits);
  StrictTable top(root, "");
  if (const int64_t format = top.integer("manifest"); format != 1)
    top.refuse(*root.find("manifest"), fmt::format("manifest: format {}, expected 1", format));
  Manifest m;
  m.id = top.string("id");
  if (!valid_id(m.id))
    top.refuse(*root.find("id"),
               fmt::format("id: got '{}', expected lower-case words joined by dots, at least two", m.id));
  m.version = top.string("version");
  Authored identity;
  parse_identity(top, identity);
  m.publisher = identity.publisher;
  m.license = identity.license;
  m.description = identity.description;
  StrictTable abi(top.table("abi"), "abi");
  m.abi_major = abi.u32("major");
  m.min_minor = abi.u32("min_minor");
  abi.finish();
  parse_library(top.table("library"), m);
  if (const ConfigNode* provides = top.optional("provides")) parse_provides(*provides, m);
  top.finish();
  return m;
}

Manifest read_manifest(const std::filesystem::path& folder) {
  const std::string name = (folder / "plugin.toml").native();
  try {
    return parse_manifest(read_whole(open_beneath(open_folder(folder), "plugin.toml"), kMaxManifestBytes), name);
  } catch (const Error& e) {
    // The parser names the file itself.
    const bool placed = e.message().starts_with(name);
    throw Error(GESTALT_CONFIG_ERROR, placed ? e.message() : fmt::format("{}: {}", name, e.message()));
  }
}

Authored parse_authored(std::string_view text, const std::string& name) {
  const ConfigNode root = read_toml_text(text, name, kLimits);
  StrictTable top(root, "");
  Authored a;
  a.id = top.string("id", "");
  a.version = top.string("version", "");
  parse_identity(top, a);
  a.needs = parse_needs(top.optional("needs"), "needs");
  top.finish();
  return a;
}

Manifest describe(const gestalt_plugin& plugin) {
  auto text = [](gestalt_str s) { return std::string(view_of(s)); };
  Manifest m;
  m.id = text(plugin.id);
  m.version = text(plugin.version);
  m.abi_major = plugin.abi_major;
  m.min_minor = plugin.min_host_minor;
  for (uint64_t i = 0; i < plugin.num_ops; ++i) m.ops.push_back(text(plugin.ops[i]->schema));
  for (uint64_t i = 0; i < plugin.num_kernels; ++i) {
    const gestalt_kernel& k = *plugin.kernels[i];
    m.kernels.push_back({text(k.op), text(k.device), text(k.backend), k.flags});
  }
  for (uint64_t i = 0; i < plugin.num_components; ++i) {
    const gestalt_component& c = *plugin.components[i];
    ComponentEntry entry{text(c.kind), text(c.name), {}};
    for (uint64_t j = 0; j < c.num_keys; ++j) {
      KeySpec spec = key_spec(c.keys[j]);
      check_key_spec(spec, entry.name);
      for (std::string* value : {&spec.default_value, &spec.min, &spec.max})
        *value = literal(*value, fmt::format("{} '{}': key '{}'", entry.kind, entry.name, spec.name));
      entry.keys.push_back(std::move(spec));
    }
    std::sort(entry.keys.begin(), entry.keys.end(), [](const KeySpec& a, const KeySpec& b) { return a.name < b.name; });
    m.components.push_back(std::move(entry));
  }
  auto by_op = [](const KernelEntry& a, const KernelEntry& b) {
    return std::tie(a.op, a.device, a.backend) < std::tie(b.op, b.device, b.backend);
  };
  auto by_name = [](const ComponentEntry& a, const ComponentEntry& b) {
    return std::tie(a.kind, a.name) < std::tie(b.kind, b.name);
  };
  std::sort(m.ops.begin(), m.ops.end());
  std::sort(m.kernels.begin(), m.kernels.end(), by_op);
  std::sort(m.components.begin(), m.components.end(), by_name);
  return m;
}

bool valid_id(std::string_view id) {
  if (id.size() > 200 || id.find('.') == std::string_view::npos) return false;
  for (const std::string& word : split(id, '.')) {
    if (word.empty()) return false;
    for (char c : word)
      if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return id.front() >= 'a' && id.front() <= 'z';
}

namespace {
std::vector<uint64_t> version_numbers(std::string_view text) {
  std::vector<uint64_t> out;
  for (const std::string& part : split(text, '.')) {
    uint64_t n = 0;
    auto [end, ec] = std::from_chars(part.data(), part.data() + part.size(), n);
    if (ec != std::errc() || end != part.data() + part.size())
      fail(GESTALT_CONFIG_ERROR, "version '{}', expected numbers joined by dots", text);
    out.push_back(n);
  }
  while (out.size() > 1 && out.back() == 0) out.pop_back();
  return out;
}
}  // namespace

bool version_in_range(std::string_view version, std::string_view range) {
  using Numbers = std::vector<uint64_t>;
  static constexpr struct {
    std::string_view sign;
    bool (*holds)(const Numbers&, const Numbers&);
  } kRelations[] = {
      {">=", [](const Numbers& a, const Numbers& b) { return a >= b; }},
      {"<=", [](const Numbers& a, const Numbers& b) { return a <= b; }},
      {"==", [](const Numbers& a, const Numbers& b) { return a == b; }},
      {">", [](const Numbers& a, const Numbers& b) { return a > b; }},
      {"<", [](const Numbers& a, const Numbers& b) { return a < b; }},
  };
  const Numbers have = version_numbers(version);
  bool all = true;
  for (const std::string& part : split(range, ',')) {
    const auto* relation = std::find_if(std::begin(kRelations), std::end(kRelations),
                                        [&](const auto& r) { return part.starts_with(r.sign); });
    if (relation == std::end(kRelations))
      fail(GESTALT_CONFIG_ERROR, "version range '{}', expected parts as '>=2.34' joined by ','", range);
    all = relation->holds(have, version_numbers(std::string_view(part).substr(relation->sign.size()))) && all;
  }
  return all;
}

}  // namespace gestalt::core
