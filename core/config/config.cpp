#include "core/config/config.h"

#include <algorithm>
#include <map>

#include <unistd.h>

#include "core/base/text.h"
#include "core/config/toml_reader.h"
#include "support/utf8.h"

namespace gestalt::core {

namespace {

constexpr size_t kMaxExtendsDepth = 16;
constexpr int kMaxFiles = 256;  // a few files that extend each other twice would otherwise double at every level
constexpr std::string_view kVariablePrefix = "GESTALT_SET_";

void stamp(ConfigNode& node, const Origin& origin) {
  node.origin = origin;
  for (ConfigNode& e : node.elements()) stamp(e, origin);
  for (ConfigMember& m : node.members()) stamp(m.value, origin);
}

void merge(ConfigNode& base, ConfigNode over) {
  for (ConfigMember& m : over.members()) {
    ConfigNode* old = base.find(m.key);
    if (old && old->is_table() && m.value.is_table())
      merge(*old, std::move(m.value));
    else
      base.insert(m.key, std::move(m.value));
  }
}

void merge_absent(ConfigNode& base, const ConfigNode& saved) {
  for (const ConfigMember& m : saved.members()) {
    ConfigNode* old = base.find(m.key);
    if (!old)
      base.insert(m.key, m.value);
    else if (old->is_table() && m.value.is_table())
      merge_absent(*old, m.value);
  }
}

// Reads a file and everything it extends.
class Loader {
 public:
  ConfigNode load(const std::filesystem::path& path) {
    std::error_code error;
    std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
    if (error) real = path;
    if (std::find(open_.begin(), open_.end(), real) != open_.end()) {
      std::vector<std::string> chain;
      for (const auto& p : open_) chain.push_back(escape_controls(p.filename().string()));
      chain.push_back(escape_controls(real.filename().string()));
      fail(GESTALT_CONFIG_ERROR, "a file extends itself, got {}", join(chain, " -> "));
    }
    if (open_.size() >= kMaxExtendsDepth || ++num_files_ > kMaxFiles)
      fail(GESTALT_CONFIG_ERROR, "too many files, expected at most {} levels and {} files", kMaxExtendsDepth,
           kMaxFiles);
    open_.push_back(std::move(real));
    ConfigNode result = resolve(read_toml_file(path), path.parent_path());
    open_.pop_back();
    return result;
  }

  ConfigNode resolve(ConfigNode document, const std::filesystem::path& folder) {
    const ConfigNode* found = document.find("extends");
    if (!found) return document;
    const ConfigNode extends = found->is_string() ? ConfigNode::array({*found}) : *found;
    const std::string where = found->origin.describe();
    document.erase("extends");
    const auto is_string = [](const ConfigNode& e) { return e.is_string(); };
    if (!extends.is_array() || !std::all_of(extends.elements().begin(), extends.elements().end(), is_string))
      fail(GESTALT_CONFIG_ERROR, "{}: [extends] wrong type, got {}, expected a list of file names", where,
           extends.text());
    ConfigNode result = ConfigNode::table();
    result.origin = document.origin;
    for (const ConfigNode& e : extends.elements()) {
      try {
        merge(result, load(folder / e.as_string()));
      } catch (const Error& error) {
        throw Error(error.code(), fmt::format("{}: [extends] {}", where, error.message()));
      }
    }
    merge(result, std::move(document));
    return result;
  }

 private:
  std::vector<std::filesystem::path> open_;
  int num_files_ = 0;
};

// A TOML value, or the text itself. What begins like a TOML list, table or string must be one: half a list is a slip of
// the pen and not a name.
ConfigNode value_of_text(std::string_view text, const std::string& name) {
  if (text.empty()) return ConfigNode::string("");
  const bool meant_as_toml = std::string_view("[{\"'").find(text.front()) != std::string_view::npos;
  if (!meant_as_toml && text.find('#') != std::string_view::npos) return ConfigNode::string(std::string(text));
  try {
    return read_toml_value(text, name);
  } catch (const Error&) {
    if (meant_as_toml) throw;
    if (!support::valid_utf8(text) || escape_controls(text) != text)
      fail(GESTALT_CONFIG_ERROR, "{}: a value that is not plain text, got '{}'", escape_controls(name),
           escape_controls(text));
    return ConfigNode::string(std::string(text));
  }
}

void collect_leaves(const ConfigNode& node, const std::string& path,
                    std::vector<std::pair<std::string, const ConfigNode*>>& out) {
  if (node.is_leaf()) {
    out.emplace_back(path, &node);
    return;
  }
  for (const ConfigMember& m : node.members()) collect_leaves(m.value, join_path(path, m.key), out);
  for (size_t i = 0; i < node.elements().size(); ++i) collect_leaves(node.elements()[i], join_index(path, i), out);
}

std::vector<std::pair<std::string, const ConfigNode*>> leaves_of(const ConfigNode& root) {
  std::vector<std::pair<std::string, const ConfigNode*>> out;
  collect_leaves(root, "", out);
  return out;
}

[[noreturn]] void wrong_type(std::string_view path, const ConfigNode& node, const char* expected) {
  fail(GESTALT_CONFIG_ERROR, "{}: [{}] wrong type, got {} {}, expected {}", node.origin.describe(),
       escape_controls(path), node.kind_name(), node.text(), expected);
}

template <class Value>
Value read_leaf(const ConfigNode& node, std::string_view path) {
  if constexpr (std::is_same_v<Value, int64_t>) {
    if (!node.is_integer()) wrong_type(path, node, "i64");
    return node.as_integer();
  } else if constexpr (std::is_same_v<Value, double>) {
    if (!node.is_number()) wrong_type(path, node, "f64");
    return node.as_real();
  } else if constexpr (std::is_same_v<Value, bool>) {
    if (!node.is_boolean()) wrong_type(path, node, "bool");
    return node.as_boolean();
  } else {
    if (!node.is_string()) wrong_type(path, node, "str");
    return node.as_string();
  }
}

template <class Value>
Value required(const Config& config, std::string_view path) {
  const ConfigNode* node = config.find(path);
  if (!node) fail(GESTALT_CONFIG_ERROR, "[{}] missing, expected a value; set it in the run file or with --set", path);
  return read_leaf<Value>(*node, path);
}

template <class Value>
Value optional(const Config& config, std::string_view path, Value fallback) {
  const ConfigNode* node = config.find(path);
  return node ? read_leaf<Value>(*node, path) : fallback;
}

template <class Value>
std::vector<Value> list(const Config& config, std::string_view path) {
  const ConfigNode* node = config.find(path);
  std::vector<Value> values;
  if (!node) return values;
  if (!node->is_array()) wrong_type(path, *node, "a list");
  for (const ConfigNode& e : node->elements()) values.push_back(read_leaf<Value>(e, path));
  return values;
}

}  // namespace

Config Config::load(const std::filesystem::path& file, const std::vector<std::string>& sets,
                    const std::vector<std::string>& environment) {
  Config config;
  config.root_ = Loader().load(file);
  config.apply_environment(environment);
  config.apply_sets(sets);
  return config;
}

Config Config::from_text(std::string_view text, const std::string& name, const std::vector<std::string>& sets,
                         const std::vector<std::string>& environment) {
  Config config;
  config.root_ = Loader().resolve(read_toml_text(text, name), std::filesystem::path(name).parent_path());
  config.apply_environment(environment);
  config.apply_sets(sets);
  return config;
}

void Config::apply_environment(const std::vector<std::string>& environment) {
  std::map<std::string, std::string> variables;  // sorted: the order of the environment is an accident
  for (const std::string& line : environment) {
    const size_t equals = line.find('=');
    if (line.starts_with(kVariablePrefix) && equals != std::string::npos)
      variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  for (const auto& [name, text] : variables) {
    std::string path = name.substr(kVariablePrefix.size());
    for (size_t at; (at = path.find("__")) != std::string::npos;) path.replace(at, 2, ".");
    const Origin origin = Origin::of(Origin::Kind::kEnvironment, name);
    set(path, value_of_text(text, origin.describe()), origin);
  }
}

void Config::apply_sets(const std::vector<std::string>& sets) {
  for (const std::string& assignment : sets) {
    size_t equals = 0;
    for (bool quoted = false; equals < assignment.size() && (quoted || assignment[equals] != '='); ++equals)
      if (assignment[equals] == '"') quoted = !quoted;
    if (equals == assignment.size())
      fail(GESTALT_CONFIG_ERROR, "[--set] no '=', got '{}', expected a.b=value", escape_controls(assignment));
    set_text(assignment.substr(0, equals), std::string_view(assignment).substr(equals + 1), "--set");
  }
}

int64_t Config::i64(std::string_view path) const { return required<int64_t>(*this, path); }
int64_t Config::i64(std::string_view path, int64_t fallback) const { return optional<int64_t>(*this, path, fallback); }
double Config::f64(std::string_view path) const { return required<double>(*this, path); }
double Config::f64(std::string_view path, double fallback) const { return optional<double>(*this, path, fallback); }
std::string Config::str(std::string_view path) const { return required<std::string>(*this, path); }
std::string Config::str(std::string_view path, std::string_view fallback) const {
  return optional<std::string>(*this, path, std::string(fallback));
}
bool Config::boolean(std::string_view path) const { return required<bool>(*this, path); }
bool Config::boolean(std::string_view path, bool fallback) const { return optional<bool>(*this, path, fallback); }
std::vector<std::string> Config::str_list(std::string_view path) const { return list<std::string>(*this, path); }
std::vector<int64_t> Config::i64_list(std::string_view path) const { return list<int64_t>(*this, path); }
std::vector<double> Config::f64_list(std::string_view path) const { return list<double>(*this, path); }

void Config::set(std::string_view path, ConfigNode value, const Origin& origin) {
  stamp(value, origin);
  ConfigNode* node = &root_;
  std::vector<PathStep> steps = parse_path(path);
  if (steps.size() > 64)
    fail(GESTALT_CONFIG_ERROR, "{}: a key of {} parts, expected at most 64", origin.describe(), steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool last = i + 1 == steps.size();
    if (steps[i].index >= 0) {
      const auto index = static_cast<size_t>(steps[i].index);
      if (!node->is_array() || index >= node->elements().size())
        fail(GESTALT_CONFIG_ERROR, "{}: [{}] no element {}, got a {} of {} elements", origin.describe(),
             escape_controls(path), index, node->kind_name(), node->elements().size());
      node = &node->elements()[index];
      if (last) *node = std::move(value);
      continue;
    }
    if (!node->is_table())
      fail(GESTALT_CONFIG_ERROR, "{}: [{}] '{}' lies in a {}, expected a table", origin.describe(),
           escape_controls(path), escape_controls(steps[i].key), node->kind_name());
    ConfigNode* next = node->find(steps[i].key);
    if (last) {
      node->insert(steps[i].key, std::move(value));
    } else if (next) {
      node = next;
    } else {
      node = &node->insert(steps[i].key, ConfigNode::table());
      node->origin = origin;
    }
  }
}

void Config::set_text(std::string_view path, std::string_view text, const std::string& flag) {
  const std::string place = fmt::format("{} {}", flag, path);
  set(path, value_of_text(text, place), Origin::of(Origin::Kind::kFlag, flag));
}

bool Config::set_default(std::string_view path, ConfigNode value, const Origin& origin) {
  if (has(path)) return false;
  set(path, std::move(value), origin);
  return true;
}

void Config::merge_checkpoint(const ConfigNode& saved, const std::string& name) {
  ConfigNode stamped = saved;
  stamp(stamped, Origin::of(Origin::Kind::kCheckpoint, name));
  merge_absent(root_, stamped);
}

void Config::merge_defaults(std::string_view text, const std::string& name) {
  ConfigNode defaults = read_toml_text(text, name);
  stamp(defaults, Origin::of(Origin::Kind::kDefault, name));
  const ConfigNode* more = find_path(defaults, "plugins.use");
  ConfigNode* use = find_mutable("plugins.use");
  if (more && use && use->is_array())
    for (const ConfigNode& id : more->elements())
      if (std::none_of(use->elements().begin(), use->elements().end(),
                       [&](const ConfigNode& known) { return known.is_string() && known.as_string() == id.as_string(); }))
        use->elements().push_back(id);
  merge_absent(root_, defaults);
}

std::vector<std::pair<std::string, const ConfigNode*>> Config::leaves() const { return leaves_of(root_); }

std::string Config::explain() const {
  std::string out;
  for (const auto& [path, node] : leaves())
    out += fmt::format("{} = {}  # {}\n", path, node->text(), node->origin.describe());
  return out;
}

std::vector<std::string> process_environment() {
  std::vector<std::string> lines;
  for (char** line = environ; line && *line; ++line) lines.emplace_back(*line);
  return lines;
}

std::vector<std::string> config_differences(const ConfigNode& before, const ConfigNode& after) {
  std::map<std::string, std::pair<std::string, std::string>> values;
  for (const auto& [path, node] : leaves_of(before)) values[path].first = node->text();
  for (const auto& [path, node] : leaves_of(after)) values[path].second = node->text();
  std::vector<std::string> lines;
  for (const auto& [path, v] : values)
    if (v.first != v.second)
      lines.push_back(fmt::format("{}: {} -> {}", path, v.first.empty() ? "(none)" : v.first,
                                  v.second.empty() ? "(none)" : v.second));
  return lines;
}

}  // namespace gestalt::core
