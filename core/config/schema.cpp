#include "core/config/schema.h"

#include <algorithm>
#include <filesystem>

#include "core/base/host.h"
#include "core/base/text.h"
#include "core/config/schema_tree.h"
#include "core/config/toml_reader.h"

namespace gestalt::core {

namespace {

constexpr std::pair<std::string_view, KeyType> kTypes[] = {
    {"i64", KeyType::kI64},   {"f64", KeyType::kF64},   {"str", KeyType::kStr},
    {"bool", KeyType::kBool}, {"file", KeyType::kFile}, {"table", KeyType::kTable},
};

[[noreturn]] void bad_spec(const KeySpec& spec, std::string_view owner, std::string_view problem) {
  fail(GESTALT_CONFIG_ERROR, "{}: schema of key '{}': {}", escape_controls(owner), escape_controls(spec.name), problem);
}

std::vector<KeyTypeChoice> read_types(const KeySpec& spec, std::string_view owner) {
  std::vector<KeyTypeChoice> types;
  for (const std::string& text : split(spec.type, '|')) {
    std::string_view name = text;
    const bool list = name.ends_with("[]");
    if (list) name.remove_suffix(2);
    const auto* found =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.first == name; });
    if (found == std::end(kTypes) || (list && found->second == KeyType::kTable))
      bad_spec(spec, owner,
               fmt::format("unknown type, got '{}', expected i64, f64, str, bool, file (each also with []) or table",
                           escape_controls(spec.type)));
    types.push_back({found->second, list});
  }
  return types;
}

bool has_type(const SchemaEntry& entry, std::initializer_list<KeyType> wanted) {
  return std::any_of(entry.types.begin(), entry.types.end(),
                     [&](KeyTypeChoice t) { return std::find(wanted.begin(), wanted.end(), t.type) != wanted.end(); });
}

std::optional<ConfigNode> read_literal(const KeySpec& spec, std::string_view owner, const std::string& text,
                                       const char* what) {
  if (text.empty()) return std::nullopt;
  try {
    return read_toml_value(text, what);
  } catch (const Error& e) {
    bad_spec(spec, owner, fmt::format("{} is no TOML value, got '{}' ({})", what, escape_controls(text), e.message()));
  }
}

bool below(const ConfigNode& a, const ConfigNode& b) {
  if (a.is_integer() && b.is_integer()) return a.as_integer() < b.as_integer();
  return !(a.as_real() >= b.as_real());  // NaN is below and above everything
}

bool matches(const ConfigNode& value, KeyType type) {
  switch (type) {
    case KeyType::kI64:
      return value.is_integer();
    case KeyType::kF64:
      return value.is_number();
    case KeyType::kStr:
    case KeyType::kFile:
      return value.is_string();
    case KeyType::kBool:
      return value.is_boolean();
    case KeyType::kTable:
      return value.is_table();
  }
  return false;
}

std::string scalar_problem(ConfigNode& value, KeyType type, const SchemaEntry& entry) {
  if (type == KeyType::kF64 && value.is_integer()) {
    const Origin origin = value.origin;
    value = ConfigNode::real(value.as_real());
    value.origin = origin;
  }
  if (value.is_number()) {
    if ((entry.min && below(value, *entry.min)) || (entry.max && below(*entry.max, value)))
      return fmt::format("out of range, got {}, expected {}{}{}", value.text(),
                         entry.min ? "at least " + entry.min->text() : "", entry.min && entry.max ? " and " : "",
                         entry.max ? "at most " + entry.max->text() : "");
  } else if (value.is_string()) {
    const std::string& text = value.as_string();
    if (!entry.choices.empty() && std::find(entry.choices.begin(), entry.choices.end(), text) == entry.choices.end()) {
      const std::string near = nearest(text, entry.choices);
      return fmt::format("unknown value, got {}, expected one of {}{}", value.text(), join(entry.choices, ", "),
                         near.empty() ? "" : fmt::format("; nearest '{}'", near));
    }
    std::error_code error;
    if (type == KeyType::kFile && !std::filesystem::is_regular_file(text, error))
      return fmt::format("no such file, got {}, expected an existing file (relative to the working folder)",
                         value.text());
  }
  return "";
}

ConfigNode::Kind element_kind(KeyType type) {
  switch (type) {
    case KeyType::kI64:
      return ConfigNode::Kind::kInteger;
    case KeyType::kF64:
      return ConfigNode::Kind::kFloat;
    case KeyType::kBool:
      return ConfigNode::Kind::kBoolean;
    default:
      return ConfigNode::Kind::kString;
  }
}

}  // namespace

bool SchemaLevel::open() const { return entry && below.empty() && has_type(*entry, {KeyType::kTable}); }

std::vector<std::string> schema_steps(std::string_view path) {
  std::vector<std::string> steps;
  std::string step;
  bool quoted = false;
  const auto finish = [&] {
    size_t lists = 0;
    for (; step.ends_with("[]"); ++lists) step.resize(step.size() - 2);
    steps.push_back(std::move(step));
    steps.insert(steps.end(), lists, "[]");
    step.clear();
  };
  for (const char c : path) {
    if (c == '"')
      quoted = !quoted;
    else if (c == '.' && !quoted)
      finish();
    else
      step += c;
  }
  finish();
  return steps;
}

KeySpec key_spec(const gestalt_config_key& key) {
  const auto text = [](gestalt_str s) { return std::string(view_of(s)); };
  return {text(key.name), text(key.type), text(key.default_value),
          text(key.min),  text(key.max),  text(key.choices),
          text(key.when), text(key.doc),  (key.flags & GESTALT_KEY_REQUIRED) != 0};
}

SchemaEntry read_key_spec(const KeySpec& spec, std::string_view owner) {
  SchemaEntry entry;
  entry.spec = spec;
  entry.owner = owner;
  const std::vector<std::string> steps = schema_steps(spec.name);
  const auto odd = [](const std::string& s) {
    return s.empty() || (s != "*" && s != "[]" && !std::all_of(s.begin(), s.end(), [](unsigned char c) {
                           return std::isalnum(c) || c == '_' || c == '-';
                         }));
  };
  if (spec.name.size() > 256 || spec.name.find('"') != std::string::npos || steps.size() > 16 || steps.back() == "[]" ||
      std::any_of(steps.begin(), steps.end(), odd))
    bad_spec(spec, owner, "malformed name, expected words of letters, digits, _ and - with '.' and '[]' between");
  entry.types = read_types(spec, owner);
  entry.default_value = read_literal(spec, owner, spec.default_value, "default");
  entry.min = read_literal(spec, owner, spec.min, "min");
  entry.max = read_literal(spec, owner, spec.max, "max");
  for (const auto& [bound, what] : {std::pair(&entry.min, "min"), std::pair(&entry.max, "max")})
    if (*bound && (!(*bound)->is_number() || !has_type(entry, {KeyType::kI64, KeyType::kF64})))
      bad_spec(spec, owner,
               fmt::format("{} needs a number and a key of type i64 or f64, got {}", what, (*bound)->text()));
  if (entry.min && entry.max && below(*entry.max, *entry.min))
    bad_spec(spec, owner, fmt::format("min {} is above max {}", entry.min->text(), entry.max->text()));
  if (!spec.choices.empty()) {
    entry.choices = split(spec.choices, '|');
    if (!has_type(entry, {KeyType::kStr})) bad_spec(spec, owner, "choices need a key of type str");
  }
  if (!spec.when.empty()) {
    const size_t equals = spec.when.find('=');
    entry.when_key = spec.when.substr(0, equals);
    if (equals == std::string::npos || entry.when_key.empty() ||
        entry.when_key.find_first_of("[]\"*") != std::string::npos)
      bad_spec(spec, owner,
               fmt::format("malformed condition, got '{}', expected key=value", escape_controls(spec.when)));
    try {
      parse_path(entry.when_key);
    } catch (const Error& e) {
      bad_spec(spec, owner, e.message());
    }
    entry.when_values = split(spec.when.substr(equals + 1), '|');
  }
  if (entry.default_value) {
    if (spec.required) bad_spec(spec, owner, "required and with a default");
    if (steps.back() == "*") bad_spec(spec, owner, "a default without a name");
    // A file that is missing here may be there on the machine of the run.
    if (!has_type(entry, {KeyType::kFile})) {
      const std::string problem = value_problem(*entry.default_value, entry);
      if (!problem.empty()) bad_spec(spec, owner, "default: " + problem);
    }
  }
  return entry;
}

void check_key_spec(const KeySpec& spec, std::string_view owner) { read_key_spec(spec, owner); }

std::string value_problem(ConfigNode& value, const SchemaEntry& entry) {
  for (const KeyTypeChoice choice : entry.types) {
    if (!choice.list) {
      if (matches(value, choice.type)) return scalar_problem(value, choice.type, entry);
      continue;
    }
    if (!value.is_array()) continue;
    auto& elements = value.elements();
    if (!std::all_of(elements.begin(), elements.end(), [&](const ConfigNode& e) { return matches(e, choice.type); }))
      continue;
    value.element_kind = element_kind(choice.type);
    for (ConfigNode& e : elements) {
      const std::string problem = scalar_problem(e, choice.type, entry);
      if (!problem.empty()) return problem;
    }
    return "";
  }
  return fmt::format("wrong type, got {} {}, expected {}", value.kind_name(), value.text(), entry.spec.type);
}

ConfigSchema::ConfigSchema() : tree_(std::make_unique<Tree>()) {}
ConfigSchema::ConfigSchema(ConfigSchema&&) noexcept = default;
ConfigSchema& ConfigSchema::operator=(ConfigSchema&&) noexcept = default;
ConfigSchema::~ConfigSchema() = default;

void ConfigSchema::extend(std::string_view section, std::string_view owner, const std::vector<KeySpec>& keys,
                          Presence presence) {
  for (const KeySpec& spec : keys) {
    SchemaEntry entry = read_key_spec(spec, owner);
    entry.section = section;
    entry.path = fmt::format("{}.{}", section, spec.name);
    entry.presence = presence;
    SchemaLevel* level = &tree_->root;
    for (const std::string& step : schema_steps(entry.path)) level = &level->below[step];
    if (level->entry) {
      if (level->entry->spec.type != spec.type)
        bad_spec(spec, owner,
                 fmt::format("[{}] belongs to {} as {}, got {}", entry.path, level->entry->owner,
                             level->entry->spec.type, spec.type));
      *level->entry = std::move(entry);
      continue;
    }
    level->entry = std::make_shared<SchemaEntry>(std::move(entry));
    tree_->entries.push_back(level->entry);
  }
}

void ConfigSchema::require_section(std::string_view section, std::string_view why) {
  tree_->required.push_back({std::string(section), std::string(why)});
}

std::vector<std::string> ConfigSchema::paths() const {
  std::vector<std::string> paths;
  for (const auto& e : tree_->entries) paths.push_back(e->path);
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace gestalt::core
