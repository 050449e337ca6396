#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/node.h"

namespace gestalt::core {

// A table of a document whose keys are all known: reads them by name and type, and refuses what was not asked for.
// Errors are CONFIG_ERROR "FILE:LINE:COL: [section] key: problem".
class StrictTable {
 public:
  // `path` names the section; empty for the top of the file. The node must outlive this.
  StrictTable(const ConfigNode& node, std::string path);

  std::string string(std::string_view key);
  std::string string(std::string_view key, std::string_view otherwise);
  int64_t integer(std::string_view key);
  uint32_t u32(std::string_view key);
  bool boolean(std::string_view key, bool otherwise);
  std::vector<std::string> strings(std::string_view key);       // empty when absent
  const ConfigNode& table(std::string_view key);                // must be there
  const std::vector<ConfigNode>& tables(std::string_view key);  // [[key]], empty when absent
  const ConfigNode* optional(std::string_view key);             // of any kind

  // After all keys were asked for: an unknown key is an error with the nearest known one.
  void finish() const;
  [[noreturn]] void refuse(const ConfigNode& at, std::string_view problem) const;

 private:
  const ConfigNode& required(std::string_view key);
  [[noreturn]] void wrong_kind(std::string_view key, const ConfigNode& value, std::string_view expected) const;

  const ConfigNode& node_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace gestalt::core
