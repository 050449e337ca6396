#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gestalt/attrs.hpp"

namespace gestalt::format_hf {

// The keys of [model], in the order in which they were set.
class ModelKeys {
 public:
  using Value = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>, std::vector<double>,
                             std::vector<std::string>>;

  ModelKeys() = default;
  explicit ModelKeys(Attrs keys);

  void set(std::string_view key, Value value);
  void set(std::string_view key, int64_t value) { set(key, Value(value)); }
  void set(std::string_view key, double value) { set(key, Value(value)); }
  void set(std::string_view key, bool value) { set(key, Value(value)); }
  void set(std::string_view key, std::string_view value) { set(key, Value(std::string(value))); }
  void set(std::string_view key, const std::string& value) { set(key, Value(value)); }
  void set(std::string_view key, const char* value) { set(key, std::string_view(value)); }
  void erase(std::string_view key);

  const Value* find(std::string_view key) const;
  // DATA_ERROR when the key is absent or of another type.
  int64_t i64(std::string_view key) const { return get<int64_t>(key); }
  double f64(std::string_view key) const { return get<double>(key); }
  bool boolean(std::string_view key) const { return get<bool>(key); }
  const std::string& str(std::string_view key) const { return get<std::string>(key); }
  const std::vector<double>& f64_list(std::string_view key) const { return get<std::vector<double>>(key); }
  const std::vector<std::pair<std::string, Value>>& all() const { return keys_; }

  // As TOML lines "key = value".
  std::string text() const;

 private:
  template <class T>
  const T& get(std::string_view key) const;

  std::vector<std::pair<std::string, Value>> keys_;
};

// A TOML literal.
std::string literal(const ModelKeys::Value& value);

// [model] with every key that the decoder has, values that stand for others replaced by those: kv_heads and head_size by
// the numbers that they follow from, windows by one list. Two models of the same layers have the same complete keys.
ModelKeys complete(ModelKeys keys);
// "norm_placement = "after", expected "before"" for each key in which `wanted` differs; both complete.
std::vector<std::string> differences(const ModelKeys& wanted, const ModelKeys& other);

}  // namespace gestalt::format_hf
