#include <algorithm>

#include "core/base/text.h"
#include "core/config/schema.h"
#include "core/config/schema_tree.h"

namespace gestalt::core {

namespace {

constexpr size_t kMaxProblems = 50;
constexpr size_t kMaxNamesInHint = 16;

// Only a checkpoint or a default said so: not the user's mistake if it no longer means anything.
bool said_by_user(const ConfigNode& node) { return node.origin.kind >= Origin::Kind::kFile; }

std::string last_step(std::string_view path) { return schema_steps(path).back(); }

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// Text that `when` is compared with.
std::string plain(const ConfigNode& node) { return node.is_string() ? node.as_string() : node.text(); }

}  // namespace

class SchemaCheck {
 public:
  SchemaCheck(Config& config, const ConfigSchema& schema)
      : config_(config), tree_(*schema.tree_), paths_(schema.paths()) {
    std::erase_if(paths_, [](const std::string& p) { return p.find('*') != std::string::npos; });
  }

  void run() {
    for (const RequiredSection& s : tree_.required)
      if (!config_.has(s.section)) add(fmt::format("[{}] is missing: {}", s.section, s.why));
    walk_table(config_.root(), tree_.root, "");
    // Conditions look at other keys, which must have their defaults by then.
    for (const auto& e : tree_.entries)
      if (e->when_key.empty()) complete(*e);
    for (const auto& e : tree_.entries)
      if (!e->when_key.empty()) complete(*e);
    if (problems_.empty()) return;
    if (num_problems_ > problems_.size())
      problems_.push_back(fmt::format("and {} more", num_problems_ - problems_.size()));
    throw Error(GESTALT_CONFIG_ERROR, join(problems_, "\n"));
  }

 private:
  void add(std::string problem) {
    if (++num_problems_ <= kMaxProblems) problems_.push_back(std::move(problem));
  }

  void walk_table(ConfigNode& table, const SchemaLevel& level, const std::string& path) {
    std::vector<std::string> stale;
    for (ConfigMember& m : table.members()) {
      auto found = level.below.find(m.key);
      if (found == level.below.end() || m.key == "[]") found = level.below.find("*");
      const std::string here = join_path(path, m.key);
      if (found != level.below.end())
        walk_value(m.value, found->second, here);
      else if (said_by_user(m.value))
        unknown(m.value, m.key, here, level, path);
      else
        stale.push_back(m.key);
    }
    for (const std::string& key : stale) table.erase(key);
  }

  void walk_value(ConfigNode& value, const SchemaLevel& level, const std::string& path) {
    const auto elements = level.below.find("[]");
    const bool element_wise = value.is_array() && elements != level.below.end();
    if (level.below.empty() || (level.entry && !value.is_table() && !element_wise)) {
      const std::string problem = value_problem(value, *level.entry);
      if (!problem.empty()) add(fmt::format("{}: [{}] {}", value.origin.describe(), path, problem));
    } else if (value.is_table() && (elements == level.below.end() || level.below.size() > 1)) {
      walk_table(value, level, path);
    } else if (element_wise) {
      for (size_t i = 0; i < value.elements().size(); ++i)
        walk_value(value.elements()[i], elements->second, join_index(path, i));
    } else {
      add(fmt::format("{}: [{}] wrong type, got {} {}, expected {}", value.origin.describe(), path, value.kind_name(),
                      value.text(), elements == level.below.end() ? "a table" : "a list of tables"));
    }
  }

  void unknown(const ConfigNode& value, const std::string& key, const std::string& path, const SchemaLevel& level,
               const std::string& parent) {
    add(fmt::format("{}: unknown key '{}'; {}", value.origin.describe(), path, hint(key, path, level, parent)));
  }

  std::string hint(const std::string& key, const std::string& path, const SchemaLevel& level,
                   const std::string& parent) const {
    std::vector<std::string> siblings;
    for (const auto& [name, below] : level.below)
      if (name != "*" && name != "[]") siblings.push_back(name);
    std::string near = nearest(key, siblings);
    if (!near.empty()) return fmt::format("nearest valid key '{}'", join_path(parent, near));
    for (const std::string& p : paths_)
      if (last_step(p) == key) return fmt::format("nearest valid key '{}'", p);
    near = nearest(lower(path), paths_);
    if (!near.empty()) return fmt::format("nearest valid key '{}'", near);
    if (siblings.empty()) return "no key is known here";
    if (siblings.size() > kMaxNamesInHint) siblings.resize(kMaxNamesInHint);
    return fmt::format("valid {}: {}", parent.empty() ? "sections" : "keys there", join(siblings, ", "));
  }

  // Default, requirement and condition of a key, in every table that may hold it.
  void complete(const SchemaEntry& entry) {
    std::vector<std::string> steps = schema_steps(entry.path);
    const std::string name = steps.back();
    if (std::find(steps.begin(), steps.end(), "*") != steps.end()) return;
    if (entry.presence == Presence::kIfPresent && !config_.has(entry.section)) return;
    steps.pop_back();
    std::vector<std::string> tables = {""};
    for (const std::string& step : steps) {
      std::vector<std::string> next;
      for (const std::string& t : tables) {
        if (step != "[]") {
          next.push_back(join_path(t, step));
        } else if (const ConfigNode* array = config_.find(t); array && array->is_array()) {
          for (size_t i = 0; i < array->elements().size(); ++i) next.push_back(join_index(t, i));
        }
      }
      tables = std::move(next);
    }
    for (const std::string& table : tables) complete_in(entry, table, join_path(table, name));
  }

  void complete_in(const SchemaEntry& entry, const std::string& table, const std::string& path) {
    if (!is_table_or_absent(table)) return;  // already reported
    const ConfigNode* value = config_.find(path);
    std::string why;
    if (!entry.when_key.empty() && !active(entry, table, why)) {
      if (value && said_by_user(*value))
        add(fmt::format("{}: [{}] has no effect because {}; it counts only when {}", value->origin.describe(), path,
                        why, entry.spec.when));
      else if (value)
        config_.find_mutable(table)->erase(last_step(entry.path));
      return;
    }
    if (value) return;
    if (entry.default_value) {
      config_.set_default(path, default_of(entry), Origin::of(Origin::Kind::kDefault, entry.owner));
    } else if (entry.spec.required) {
      const ConfigNode* place = config_.find(table);
      const std::string where =
          place && place->origin.kind == Origin::Kind::kFile ? place->origin.describe() + ": " : "";
      add(fmt::format("{}[{}] missing, expected {} for {}: {}", where, path, entry.spec.type, entry.owner,
                      entry.spec.doc));
    }
  }

  bool is_table_or_absent(const std::string& path) const {
    const ConfigNode* node = &config_.root();
    for (const PathStep& step : parse_path(path)) {
      if (step.index >= 0) {
        node = &node->elements()[static_cast<size_t>(step.index)];
        continue;
      }
      if (!node->is_table()) return false;
      node = node->find(step.key);
      if (!node) return true;
    }
    return node->is_table();
  }

  // The condition's key stands in the same table or in the section.
  bool active(const SchemaEntry& entry, const std::string& table, std::string& why) const {
    const ConfigNode* node = nullptr;
    std::string path;
    for (const std::string& t : {table, entry.section}) {
      path = t + "." + entry.when_key;
      node = config_.find(path);
      if (node) break;
    }
    if (!node) {
      why = fmt::format("'{}' is not set", path);
      return false;
    }
    why = fmt::format("'{}' is {} ({})", path, node->text(), node->origin.describe());
    return std::find(entry.when_values.begin(), entry.when_values.end(), plain(*node)) != entry.when_values.end();
  }

  // A default of core may quote another key: 'runs/<run.name>'.
  ConfigNode default_of(const SchemaEntry& entry) const {
    const ConfigNode& value = *entry.default_value;
    if (entry.owner != "core" || !value.is_string()) return value;
    std::string text = value.as_string();
    const size_t begin = text.find('<'), end = text.find('>');
    if (begin == std::string::npos || end == std::string::npos || end < begin) return value;
    const ConfigNode* quoted = config_.find(text.substr(begin + 1, end - begin - 1));
    if (!quoted) return value;
    return ConfigNode::string(text.replace(begin, end - begin + 1, plain(*quoted)));
  }

  Config& config_;
  const ConfigSchema::Tree& tree_;
  std::vector<std::string> paths_;
  std::vector<std::string> problems_;
  size_t num_problems_ = 0;
};

void check(Config& config, const ConfigSchema& schema) { SchemaCheck(config, schema).run(); }

}  // namespace gestalt::core
