#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gestalt::core {

// Where a value came from, in rising precedence.
struct Origin {
  enum class Kind { kDefault, kCheckpoint, kFile, kEnvironment, kFlag };
  Kind kind = Kind::kDefault;
  std::shared_ptr<const std::string> name;  // file, variable, flag, checkpoint, or who gave the default
  uint32_t line = 0, column = 0;            // files only, from 1

  static Origin of(Kind kind, std::string name);
  // "configs/x.toml:12", "--set", "environment GESTALT_SET_train__steps", "default of gestalt.adam", "checkpoint DIR".
  std::string describe() const;
  std::string position() const;  // "FILE:LINE:COL" for files, describe() otherwise
};

struct ConfigMember;

// One value of a TOML document, free of the parser's types.
class ConfigNode {
 public:
  enum class Kind { kTable, kArray, kString, kInteger, kFloat, kBoolean };

  ConfigNode();  // an empty table
  ConfigNode(const ConfigNode&);
  ConfigNode(ConfigNode&&) noexcept;
  ConfigNode& operator=(const ConfigNode&);
  ConfigNode& operator=(ConfigNode&&) noexcept;
  ~ConfigNode();
  static ConfigNode table();
  static ConfigNode array(std::vector<ConfigNode> elements = {});
  static ConfigNode string(std::string value);
  static ConfigNode integer(int64_t value);
  static ConfigNode real(double value);
  static ConfigNode boolean(bool value);

  Kind kind() const { return kind_; }
  bool is_table() const { return kind_ == Kind::kTable; }
  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_integer() const { return kind_ == Kind::kInteger; }
  bool is_number() const { return kind_ == Kind::kInteger || kind_ == Kind::kFloat; }
  bool is_boolean() const { return kind_ == Kind::kBoolean; }
  bool is_leaf() const;           // a scalar, or an array without tables and arrays inside
  const char* kind_name() const;  // "table", "integer", ...

  // For the kind's owner only; the wrong kind is an internal error.
  const std::string& as_string() const;
  int64_t as_integer() const;
  double as_real() const;  // integers too
  bool as_boolean() const;
  const std::vector<ConfigNode>& elements() const { return elements_; }
  std::vector<ConfigNode>& elements() { return elements_; }

  // Tables keep the order of the file.
  const std::vector<ConfigMember>& members() const { return members_; }
  std::vector<ConfigMember>& members() { return members_; }
  const ConfigNode* find(std::string_view key) const;  // a key of this table, not a path; NULL if absent or no table
  ConfigNode* find(std::string_view key);
  ConfigNode& insert(std::string_view key, ConfigNode value);  // replaces what is there
  void erase(std::string_view key);

  // The TOML text of a scalar or array (tables inline): 5, "a", [1, 2].
  std::string text() const;

  Origin origin;
  // Kind of the elements of an empty array, where a schema has said so.
  Kind element_kind = Kind::kString;

 private:
  Kind kind_ = Kind::kTable;
  int64_t integer_ = 0;  // boolean too
  double real_ = 0;
  std::string string_;
  std::vector<ConfigNode> elements_;
  std::vector<ConfigMember> members_;
};

struct ConfigMember {
  std::string key;
  ConfigNode value;
};

// Equal kinds and values (1 and 1.0 differ; the order of members does not count); origins are not compared.
bool same_value(const ConfigNode& a, const ConfigNode& b);

// The whole table as a TOML document; reading it gives the same values.
std::string to_toml(const ConfigNode& table);

// A path names a value: `train.steps`, `data.corpora[0].path`, `kernels.pin."core.attention"`.
struct PathStep {
  std::string key;     // empty for an index
  int64_t index = -1;  // -1: a key
};
std::vector<PathStep> parse_path(std::string_view path);             // CONFIG_ERROR when malformed
std::string join_path(std::string_view path, std::string_view key);  // quotes the key where needed
std::string join_index(std::string_view path, size_t index);
const ConfigNode* find_path(const ConfigNode& root, std::string_view path);

}  // namespace gestalt::core
