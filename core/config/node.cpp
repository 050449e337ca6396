#include "core/config/node.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/text.h"

namespace gestalt::core {

namespace {

constexpr int64_t kMaxIndex = 1 << 20;

bool is_bare_key(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7F)
      out += fmt::format("\\u{:04X}", byte);
    else
      out += c;
  }
  return out += '"';
}

std::string key_text(std::string_view key) { return is_bare_key(key) ? std::string(key) : quote(key); }

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

[[noreturn]] void wrong_kind(const ConfigNode& node, const char* wanted) {
  fail(GESTALT_INTERNAL, "value read as {}, got a {}", wanted, node.kind_name());
}

bool is_table_array(const ConfigNode& node) {
  return node.is_array() && !node.elements().empty() &&
         std::all_of(node.elements().begin(), node.elements().end(), [](const ConfigNode& e) { return e.is_table(); });
}

void write_table(const ConfigNode& table, const std::string& path, std::string& out) {
  for (const ConfigMember& m : table.members())
    if (!m.value.is_table() && !is_table_array(m.value)) out += key_text(m.key) + " = " + m.value.text() + "\n";
  for (const ConfigMember& m : table.members()) {
    const std::string below = join_path(path, m.key);
    if (m.value.is_table()) {
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", below);
      write_table(m.value, below, out);
    } else if (is_table_array(m.value)) {
      for (const ConfigNode& e : m.value.elements()) {
        out += fmt::format("{}[[{}]]\n", out.empty() ? "" : "\n", below);
        write_table(e, below, out);
      }
    }
  }
}

[[noreturn]] void bad_path(std::string_view path, std::string_view problem) {
  fail(GESTALT_CONFIG_ERROR,
       "[{}] malformed key: {}; use names separated by dots, [0] for an element and quotes round odd names",
       escape_controls(path), problem);
}

}  // namespace

Origin Origin::of(Kind kind, std::string name) {
  Origin o;
  o.kind = kind;
  o.name = std::make_shared<const std::string>(std::move(name));
  return o;
}

std::string Origin::describe() const {
  const std::string text = name ? escape_controls(*name) : "";
  switch (kind) {
    case Kind::kDefault:
      return "default of " + text;
    case Kind::kCheckpoint:
      return "checkpoint " + text;
    case Kind::kFile:
      return line > 0 ? fmt::format("{}:{}", text, line) : text;
    case Kind::kEnvironment:
      return "environment " + text;
    case Kind::kFlag:
      return text;
  }
  return text;
}

std::string Origin::position() const {
  return kind == Kind::kFile && line > 0 ? fmt::format("{}:{}", describe(), column) : describe();
}

ConfigNode::ConfigNode() = default;
ConfigNode::ConfigNode(const ConfigNode&) = default;
ConfigNode::ConfigNode(ConfigNode&&) noexcept = default;
ConfigNode& ConfigNode::operator=(const ConfigNode&) = default;
ConfigNode& ConfigNode::operator=(ConfigNode&&) noexcept = default;
ConfigNode::~ConfigNode() = default;

ConfigNode ConfigNode::table() { return ConfigNode(); }

ConfigNode ConfigNode::array(std::vector<ConfigNode> elements) {
  ConfigNode n;
  n.kind_ = Kind::kArray;
  n.elements_ = std::move(elements);
  return n;
}

ConfigNode ConfigNode::string(std::string value) {
  ConfigNode n;
  n.kind_ = Kind::kString;
  n.string_ = std::move(value);
  return n;
}

ConfigNode ConfigNode::integer(int64_t value) {
  ConfigNode n;
  n.kind_ = Kind::kInteger;
  n.integer_ = value;
  return n;
}

ConfigNode ConfigNode::real(double value) {
  ConfigNode n;
  n.kind_ = Kind::kFloat;
  n.real_ = value;
  return n;
}

ConfigNode ConfigNode::boolean(bool value) {
  ConfigNode n;
  n.kind_ = Kind::kBoolean;
  n.integer_ = value;
  return n;
}

bool ConfigNode::is_leaf() const {
  if (is_table()) return false;
  return std::none_of(elements_.begin(), elements_.end(),
                      [](const ConfigNode& e) { return e.is_table() || e.is_array(); });
}

const char* ConfigNode::kind_name() const {
  static constexpr const char* kNames[] = {"table", "array", "string", "integer", "float", "boolean"};
  return kNames[static_cast<size_t>(kind_)];
}

const std::string& ConfigNode::as_string() const {
  if (!is_string()) wrong_kind(*this, "string");
  return string_;
}

int64_t ConfigNode::as_integer() const {
  if (!is_integer()) wrong_kind(*this, "integer");
  return integer_;
}

double ConfigNode::as_real() const {
  if (!is_number()) wrong_kind(*this, "float");
  return is_integer() ? static_cast<double>(integer_) : real_;
}

bool ConfigNode::as_boolean() const {
  if (!is_boolean()) wrong_kind(*this, "boolean");
  return integer_ != 0;
}

const ConfigNode* ConfigNode::find(std::string_view key) const {
  for (const ConfigMember& m : members_)
    if (m.key == key) return &m.value;
  return nullptr;
}

ConfigNode* ConfigNode::find(std::string_view key) {
  return const_cast<ConfigNode*>(static_cast<const ConfigNode*>(this)->find(key));
}

ConfigNode& ConfigNode::insert(std::string_view key, ConfigNode value) {
  if (!is_table()) wrong_kind(*this, "table");
  if (ConfigNode* old = find(key)) return *old = std::move(value);
  members_.push_back({std::string(key), std::move(value)});
  return members_.back().value;
}

void ConfigNode::erase(std::string_view key) {
  std::erase_if(members_, [&](const ConfigMember& m) { return m.key == key; });
}

std::string ConfigNode::text() const {
  switch (kind_) {
    case Kind::kString:
      return quote(string_);
    case Kind::kInteger:
      return fmt::format("{}", integer_);
    case Kind::kFloat:
      return real_text(real_);
    case Kind::kBoolean:
      return integer_ ? "true" : "false";
    case Kind::kArray: {
      std::vector<std::string> parts;
      for (const ConfigNode& e : elements_) parts.push_back(e.text());
      return "[" + join(parts, ", ") + "]";
    }
    case Kind::kTable: {
      std::vector<std::string> parts;
      for (const ConfigMember& m : members_) parts.push_back(key_text(m.key) + " = " + m.value.text());
      return parts.empty() ? "{}" : "{ " + join(parts, ", ") + " }";
    }
  }
  return "";
}

bool same_value(const ConfigNode& a, const ConfigNode& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is_array()) {
    return std::equal(a.elements().begin(), a.elements().end(), b.elements().begin(), b.elements().end(), same_value);
  }
  if (a.is_table()) {
    return a.members().size() == b.members().size() &&
           std::all_of(a.members().begin(), a.members().end(), [&](const ConfigMember& m) {
             const ConfigNode* other = b.find(m.key);
             return other && same_value(m.value, *other);
           });
  }
  return a.text() == b.text();
}

std::string to_toml(const ConfigNode& table) {
  std::string out;
  write_table(table, "", out);
  return out;
}

std::vector<PathStep> parse_path(std::string_view path) {
  std::vector<PathStep> steps;
  size_t i = 0;
  bool key_expected = true;
  while (i < path.size() || key_expected) {
    if (i >= path.size()) bad_path(path, "a name is missing");
    if (!key_expected && path[i] == '[') {
      int64_t index = 0;
      const size_t close = std::min(path.find(']', i), path.size());
      const char* end = path.data() + close;
      const auto [p, error] = std::from_chars(path.data() + i + 1, end, index);
      if (close == path.size() || error != std::errc() || p != end || index < 0 || index > kMaxIndex)
        bad_path(path, "an element is written [0]");
      steps.push_back({"", index});
      i = close + 1;
    } else if (!key_expected && path[i] == '.') {
      key_expected = true;
      ++i;
    } else if (key_expected && path[i] == '"') {
      std::string key;
      for (++i; i < path.size() && path[i] != '"'; ++i) {
        if (path[i] == '\\' && i + 1 < path.size()) ++i;
        key += path[i];
      }
      if (i == path.size()) bad_path(path, "a quote is not closed");
      steps.push_back({std::move(key)});
      key_expected = false;
      ++i;
    } else if (key_expected) {
      const size_t end = std::min(path.find_first_of(".[\"", i), path.size());
      if (!is_bare_key(path.substr(i, end - i))) bad_path(path, "a name is missing or has odd characters");
      steps.push_back({std::string(path.substr(i, end - i))});
      key_expected = false;
      i = end;
    } else {
      bad_path(path, "expected '.' or '['");
    }
  }
  return steps;
}

std::string join_path(std::string_view path, std::string_view key) {
  return path.empty() ? key_text(key) : fmt::format("{}.{}", path, key_text(key));
}

std::string join_index(std::string_view path, size_t index) { return fmt::format("{}[{}]", path, index); }

const ConfigNode* find_path(const ConfigNode& root, std::string_view path) {
  const ConfigNode* node = &root;
  for (const PathStep& step : parse_path(path)) {
    if (step.index < 0) {
      node = node->find(step.key);
    } else {
      const auto i = static_cast<size_t>(step.index);
      node = i < node->elements().size() ? &node->elements()[i] : nullptr;
    }
    if (!node) return nullptr;
  }
  return node;
}

}  // namespace gestalt::core
