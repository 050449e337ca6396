#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/json.h"

namespace gestalt::format_hf {

// A config.json, or an object inside it, that notes which keys have been asked for: what nobody asked for is not
// understood. A null value counts as absent.
class ConfigReader {
 public:
  // The object must outlive the reader. prefix: where it stands in the file, "rope_scaling." or empty.
  explicit ConfigReader(const support::Json& object, std::string prefix = {})
      : object_(object), prefix_(std::move(prefix)) {}

  bool has(std::string_view key) const { return find(key) != nullptr; }
  const support::Json* find(std::string_view key) const;  // NULL if absent or null
  bool has_null(std::string_view key) const;              // there, and null
  int64_t i64(std::string_view key, int64_t absent) const;
  double f64(std::string_view key, double absent) const;
  bool boolean(std::string_view key, bool absent) const;
  std::string str(std::string_view key, std::string_view absent) const;
  std::vector<double> f64_list(std::string_view key) const;  // empty if absent
  const ConfigReader* section(std::string_view key) const;   // an object inside; NULL if absent
  // The key is understood although it changes nothing here.
  void mention(std::string_view key) const { used_.emplace(key); }
  // DATA_ERROR unless absent or this.
  void expect(std::string_view key, bool value) const;

  const support::Json& object() const { return object_; }
  // "rope_scaling.factor is 2.0" for each key that nobody asked for.
  std::vector<std::string> unasked() const;

 private:
  const support::Json& object_;
  std::string prefix_;
  mutable std::set<std::string, std::less<>> used_;
  mutable std::map<std::string, std::unique_ptr<ConfigReader>, std::less<>> sections_;
};

}  // namespace gestalt::format_hf
