// Manifests as text: the file that `gestalt plugin pack` writes, and the lines that manifest and binary must share.
#include <algorithm>

#include "core/base/text.h"
#include "core/plugin/flags.h"
#include "core/plugin/manifest.h"

namespace gestalt::core {

namespace {

std::string quote(std::string_view text) { return ConfigNode::string(std::string(text)).text(); }

std::string quote_list(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& t : texts) quoted.push_back(quote(t));
  return "[" + join(quoted, ", ") + "]";
}

std::string key_text(const KeySpec& key) {
  std::string out = fmt::format("{{ type = {}", quote(key.type));
  if (key.required) out += ", required = true";
  if (!key.default_value.empty()) out += ", default = " + key.default_value;
  if (!key.min.empty()) out += ", min = " + key.min;
  if (!key.max.empty()) out += ", max = " + key.max;
  if (!key.choices.empty()) out += ", choices = " + quote(key.choices);
  if (!key.when.empty()) out += ", when = " + quote(key.when);
  if (!key.doc.empty()) out += ", doc = " + quote(key.doc);
  return out + " }";
}

void append_component(std::string& out, const ComponentEntry& c) {
  out += fmt::format("\n[[provides.component]]\nkind = {}\nname = {}\n", quote(c.kind), quote(c.name));
  for (const KeySpec& key : c.keys) out += fmt::format("config.{} = {}\n", join_path("", key.name), key_text(key));
}

}  // namespace

std::string to_toml(const Manifest& m) {
  std::string out = fmt::format("# Written by `gestalt plugin pack`.\nmanifest = 1\nid = {}\nversion = {}\n",
                                quote(m.id), quote(m.version));
  if (!m.publisher.empty()) out += fmt::format("publisher = {}\n", quote(m.publisher));
  if (!m.license.empty()) out += fmt::format("license = {}\n", quote(m.license));
  if (!m.description.empty()) out += fmt::format("description = {}\n", quote(m.description));
  out += fmt::format("\n[abi]\nmajor = {}\nmin_minor = {}\n", m.abi_major, m.min_minor);
  out += fmt::format("\n[library.{}]\npath = {}\nsha256 = {}\n", kPlatform, quote(m.library), quote(m.sha256));
  for (const Need& need : m.needs)
    out += fmt::format("needs.{} = {}\n", join_path("", need.name),
                       need.range.empty() ? quote_list(need.list) : quote(need.range));
  for (const std::string& schema : m.ops) out += fmt::format("\n[[provides.op]]\nschema = {}\n", quote(schema));
  for (const KernelEntry& k : m.kernels) {
    out += fmt::format("\n[[provides.kernel]]\nop = {}\ndevice = {}\nbackend = {}\n", quote(k.op), quote(k.device),
                       quote(k.backend));
    if (k.flags) out += fmt::format("flags = {}\n", quote_list(kernel_flag_list(k.flags)));
  }
  for (const ComponentEntry& c : m.components) append_component(out, c);
  return out;
}

std::vector<std::string> promises(const Manifest& m) {
  std::vector<std::string> lines = {
      fmt::format("id '{}'", m.id),
      fmt::format("version '{}'", m.version),
      fmt::format("ABI {}, at least minor {}", m.abi_major, m.min_minor),
  };
  for (const std::string& schema : m.ops) lines.push_back(fmt::format("op '{}'", schema));
  for (const KernelEntry& k : m.kernels)
    lines.push_back(fmt::format("kernel of '{}' on '{}' by '{}' with flags [{}]", k.op, k.device, k.backend,
                                join(kernel_flag_list(k.flags), ", ")));
  for (const ComponentEntry& c : m.components) {
    lines.push_back(fmt::format("{} '{}'", c.kind, c.name));
    for (const KeySpec& key : c.keys)
      lines.push_back(fmt::format("{} '{}' with key {} = {}", c.kind, c.name, key.name, key_text(key)));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace gestalt::core
