#pragma once

// How a ConfigSchema is stored; only schema.cpp and schema_check.cpp look.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/schema.h"

namespace gestalt::core {

enum class KeyType { kI64, kF64, kStr, kBool, kFile, kTable };

struct KeyTypeChoice {
  KeyType type;
  bool list;
};

// A KeySpec with its literals read.
struct SchemaEntry {
  KeySpec spec;
  std::string owner;
  std::string section;
  std::string path;  // section and name: "data.corpora[].path"
  Presence presence = Presence::kAlways;
  std::vector<KeyTypeChoice> types;
  std::optional<ConfigNode> default_value, min, max;
  std::vector<std::string> choices;
  std::string when_key;
  std::vector<std::string> when_values;
};

// The keys of one table. "*" is any key that is not named, "[]" the elements of an array.
struct SchemaLevel {
  std::shared_ptr<SchemaEntry> entry;
  std::map<std::string, SchemaLevel, std::less<>> below;

  bool open() const;  // whatever is inside belongs to somebody else
};

struct RequiredSection {
  std::string section, why;
};

struct ConfigSchema::Tree {
  SchemaLevel root;
  std::vector<std::shared_ptr<SchemaEntry>> entries;  // in the order of extend
  std::vector<RequiredSection> required;
};

// Reads a specification; throws CONFIG_ERROR as check_key_spec says.
SchemaEntry read_key_spec(const KeySpec& spec, std::string_view owner);

// What is wrong with a value, "" if nothing; turns integers into floats where the key is f64 and tells empty lists what
// they are lists of. The message has no place and no key: "wrong type, got string \"a\", expected i64".
std::string value_problem(ConfigNode& value, const SchemaEntry& entry);

// Steps of a schema path: data.corpora[].path -> data, corpora, [], path; metrics."gestalt.jsonl" -> two.
std::vector<std::string> schema_steps(std::string_view path);

}  // namespace gestalt::core
