#pragma once

#include <map>
#include <mutex>
#include <set>

#include "gestalt/format.hpp"
#include "plugins/format_hf/family.h"
#include "plugins/format_hf/stored_tensors.h"

namespace gestalt::format_hf {

// One model: its family's tables over its config.json and its tensors.
class HfModel : public FormatModel {
 public:
  HfModel(std::string folder, const Family& family, support::Json config, StoredTensors tensors, std::string prefix);

  std::string config() const override;
  bool read(std::string_view name, const gestalt_view& out) override;
  void report(const KeySink& sink) const override;

 private:
  // The stored tensor of a name of the tables, with or without the family's optional prefix.
  StoredTensors::Place place_of(std::string_view name) const;

  std::string folder_;
  const Family& family_;
  Translated translated_;
  StoredTensors tensors_;
  std::string prefix_;

  mutable std::mutex mutex_;
  std::set<std::string, std::less<>> used_;  // stored names
  std::map<std::string, std::pair<int, std::string>> lines_;  // by logical name: kind and text
};

}  // namespace gestalt::format_hf
