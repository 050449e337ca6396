#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "support/safetensors.h"

namespace gestalt::format_hf {

// The tensors of a model: one safetensors file, or shards with their index.
class StoredTensors {
 public:
  // A folder: model.safetensors, or the shards of model.safetensors.index.json.
  static StoredTensors of_folder(const std::string& folder);
  static StoredTensors of_file(const std::string& file);

  struct Place {
    const support::SafetensorsReader* file;
    const support::SafetensorsEntry* entry;
  };
  // An empty place when there is none.
  Place find(std::string_view name) const;
  std::vector<std::string_view> names() const;  // in the order of the files

 private:
  void add(const std::string& file);

  std::vector<std::unique_ptr<support::SafetensorsReader>> files_;
  std::unordered_map<std::string_view, Place> places_;  // keys point into the readers
};

}  // namespace gestalt::format_hf
