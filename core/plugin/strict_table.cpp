#include "core/plugin/strict_table.h"

#include "core/base/error.h"
#include "core/base/text.h"

namespace gestalt::core {

StrictTable::StrictTable(const ConfigNode& node, std::string path) : node_(node), path_(std::move(path)) {
  if (!node.is_table()) refuse(node, fmt::format("expected a table, got {}", node.text()));
}

const ConfigNode* StrictTable::optional(std::string_view key) {
  known_.emplace(key);
  return node_.find(key);
}

const ConfigNode& StrictTable::required(std::string_view key) {
  const ConfigNode* value = optional(key);
  if (!value) refuse(node_, fmt::format("key '{}' is missing", key));
  return *value;
}

std::string StrictTable::string(std::string_view key) {
  const ConfigNode& value = required(key);
  if (!value.is_string()) wrong_kind(key, value, "a string");
  if (value.as_string().empty()) refuse(value, fmt::format("{}: empty, expected text", key));
  if (value.as_string().find('\0') != std::string::npos) refuse(value, fmt::format("{}: holds a NUL character", key));
  return value.as_string();
}

std::string StrictTable::string(std::string_view key, std::string_view otherwise) {
  const ConfigNode* value = optional(key);
  if (!value) return std::string(otherwise);
  if (!value->is_string()) wrong_kind(key, *value, "a string");
  return value->as_string();
}

int64_t StrictTable::integer(std::string_view key) {
  const ConfigNode& value = required(key);
  if (!value.is_integer()) wrong_kind(key, value, "an integer");
  return value.as_integer();
}

uint32_t StrictTable::u32(std::string_view key) {
  const int64_t value = integer(key);
  if (value < 0 || value > UINT32_MAX)
    refuse(*node_.find(key), fmt::format("{}: got {}, expected 0 to {}", key, value, UINT32_MAX));
  return static_cast<uint32_t>(value);
}

bool StrictTable::boolean(std::string_view key, bool otherwise) {
  const ConfigNode* value = optional(key);
  if (!value) return otherwise;
  if (!value->is_boolean()) wrong_kind(key, *value, "true or false");
  return value->as_boolean();
}

std::vector<std::string> StrictTable::strings(std::string_view key) {
  std::vector<std::string> out;
  const ConfigNode* value = optional(key);
  if (!value) return out;
  if (!value->is_array()) wrong_kind(key, *value, "an array of strings");
  for (const ConfigNode& e : value->elements()) {
    if (!e.is_string()) wrong_kind(key, e, "a string in the array");
    out.push_back(e.as_string());
  }
  return out;
}

const ConfigNode& StrictTable::table(std::string_view key) {
  const ConfigNode& value = required(key);
  if (!value.is_table()) wrong_kind(key, value, "a table");
  return value;
}

const std::vector<ConfigNode>& StrictTable::tables(std::string_view key) {
  static const std::vector<ConfigNode> kNone;
  const ConfigNode* value = optional(key);
  if (!value) return kNone;
  if (!value->is_array()) wrong_kind(key, *value, fmt::format("tables [[{}]]", join_path(path_, key)));
  return value->elements();
}

void StrictTable::finish() const {
  const std::vector<std::string> known(known_.begin(), known_.end());
  for (const ConfigMember& member : node_.members()) {
    if (known_.count(member.key)) continue;
    const std::string near = nearest(member.key, known);
    refuse(member.value, fmt::format("unknown key, got '{}', expected one of {}{}", escape_controls(member.key),
                                     join(known, ", "), near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  }
}

void StrictTable::refuse(const ConfigNode& at, std::string_view problem) const {
  const std::string section = path_.empty() ? "" : fmt::format("[{}] ", path_);
  fail(GESTALT_CONFIG_ERROR, "{}: {}", at.origin.position(), escape_controls(section + std::string(problem)));
}

void StrictTable::wrong_kind(std::string_view key, const ConfigNode& value, std::string_view expected) const {
  refuse(value, fmt::format("{}: expected {}, got {}", key, expected, value.text()));
}

}  // namespace gestalt::core
