// plugins.lock.toml.
#include <algorithm>

#include "core/base/file.h"
#include "core/config/toml_reader.h"
#include "core/plugin/loader.h"
#include "core/plugin/strict_table.h"

namespace gestalt::core {

const LockEntry* Lock::find(std::string_view id) const {
  for (const LockEntry& e : plugins)
    if (e.id == id) return &e;
  return nullptr;
}

Lock parse_lock(std::string_view text, const std::string& name) {
  const ConfigNode root = read_toml_text(text, name);
  StrictTable top(root, "");
  if (const int64_t format = top.integer("lock"); format != 1)
    top.refuse(*root.find("lock"), fmt::format("lock: format {}, expected 1", format));
  Lock lock;
  lock.path = name;
  for (const ConfigNode& node : top.tables("plugin")) {
    StrictTable table(node, "plugin");
    LockEntry entry{table.string("id"), table.string("version"), table.string("sha256")};
    table.finish();
    if (lock.find(entry.id)) table.refuse(node, fmt::format("id: '{}' is listed twice", entry.id));
    lock.plugins.push_back(std::move(entry));
  }
  top.finish();
  std::sort(lock.plugins.begin(), lock.plugins.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return lock;
}

Lock read_lock(const std::filesystem::path& path) { return parse_lock(read_file(path, 1 << 20), path.native()); }

std::string to_toml(const Lock& lock) {
  std::string out = "# Written by `gestalt plugin lock`: the plugin files that trust 'locked' accepts.\nlock = 1\n";
  for (const LockEntry& e : lock.plugins)
    out += fmt::format("\n[[plugin]]\nid = {}\nversion = {}\nsha256 = {}\n", ConfigNode::string(e.id).text(),
                       ConfigNode::string(e.version).text(), ConfigNode::string(e.sha256).text());
  return out;
}

}  // namespace gestalt::core
