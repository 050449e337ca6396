// Strict JSON: a value type, a reader with limits, a writer.
//
// Refused: duplicate keys, more than `max_depth` levels, more than `max_bytes`, integers outside int64/uint64 (they are
// kept exactly, never turned into doubles), invalid UTF-8, a byte order mark, anything after the value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gestalt::support {

struct JsonMember;

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<JsonMember>;  // in file order, keys unique

  Json() noexcept;
  Json(std::nullptr_t) noexcept;
  Json(bool value) noexcept;
  Json(int value) noexcept;
  Json(int64_t value) noexcept;
  Json(uint64_t value) noexcept;
  Json(double value) noexcept;
  Json(const char* value);
  Json(std::string value) noexcept;
  Json(std::string_view value);
  Json(Array value) noexcept;
  Json(Object value) noexcept;
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  static Json array(std::initializer_list<Json> items = {});
  static Json object(std::initializer_list<JsonMember> members = {});

  bool is_null() const noexcept;
  bool is_bool() const noexcept;
  bool is_integer() const noexcept;
  bool is_number() const noexcept;  // integers included
  bool is_string() const noexcept;
  bool is_array() const noexcept;
  bool is_object() const noexcept;
  std::string_view kind() const noexcept;  // "null" "boolean" "integer" "number" "string" "array" "object"

  // The value itself; DATA_ERROR when it is of another kind or out of range. f64 takes integers too.
  bool boolean() const;
  int64_t i64() const;
  uint64_t u64() const;
  double f64() const;
  const std::string& str() const;
  const Array& items() const;
  const Object& members() const;
  Array& items();
  Object& members();
  uint64_t size() const;  // of an array or object

  // Members of an object. find is a linear search, NULL if absent; the others throw a DATA_ERROR that names the key
  // when the member is absent and has no default, or is of another kind. A null member counts as absent.
  const Json* find(std::string_view key) const;
  const Json& at(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  bool boolean(std::string_view key) const;
  bool boolean(std::string_view key, bool absent) const;
  int64_t i64(std::string_view key) const;
  int64_t i64(std::string_view key, int64_t absent) const;
  double f64(std::string_view key) const;
  double f64(std::string_view key, double absent) const;
  const std::string& str(std::string_view key) const;
  std::string str(std::string_view key, std::string_view absent) const;
  std::vector<int64_t> i64_list(std::string_view key) const;

  // Adds or replaces a member; a null value becomes an object first.
  Json& set(std::string_view key, Json value);
  void push(Json value);

  bool operator==(const Json& other) const;

 private:
  std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Array, Object> value_;
};

struct JsonMember {
  std::string key;
  Json value;
  bool operator==(const JsonMember& other) const { return key == other.key && value == other.value; }
};

struct JsonLimits {
  uint64_t max_bytes = uint64_t{16} << 20;
  int max_depth = 64;
};

// `origin` (a file's path, "header of x") starts every message: "[origin] problem at byte N".
Json parse_json(std::string_view text, std::string_view origin, const JsonLimits& limits = {});
Json read_json_file(const std::string& path, const JsonLimits& limits = {});

// indent < 0: one line without spaces. Invalid UTF-8 is written as U+FFFD; a NaN or infinity is an INVALID_ARGUMENT.
std::string write_json(const Json& value, int indent = -1);

// Pieces for writers of lines that must not allocate. A double keeps its value exactly and stays a double (1 -> 1.0).
void append_json_string(std::string* out, std::string_view text);
void append_json_number(std::string* out, double value);
void append_json_number(std::string* out, int64_t value);

}  // namespace gestalt::support
