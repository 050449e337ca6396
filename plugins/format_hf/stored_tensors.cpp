#include "plugins/format_hf/stored_tensors.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "gestalt/error.hpp"
#include "support/json.h"

namespace gestalt::format_hf {

namespace fs = std::filesystem;

void StoredTensors::add(const std::string& file) {
  files_.push_back(std::make_unique<support::SafetensorsReader>(file));
  for (const support::SafetensorsEntry& e : files_.back()->entries())
    if (const auto [it, fresh] = places_.emplace(e.name, Place{files_.back().get(), &e}); !fresh)
      throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] tensor '{}' is also in '{}'", file, e.name, it->second.file->path()));
}

StoredTensors StoredTensors::of_file(const std::string& file) {
  StoredTensors t;
  t.add(file);
  return t;
}

StoredTensors StoredTensors::of_folder(const std::string& folder) {
  const std::string single = folder + "/model.safetensors", index = folder + "/model.safetensors.index.json";
  if (fs::exists(single)) return of_file(single);
  if (!fs::exists(index))
    throw Error(GESTALT_NOT_FOUND,
                fmt::format("[{}] holds neither model.safetensors nor model.safetensors.index.json", folder));
  const support::Json map = support::read_json_file(index, {.max_bytes = uint64_t{64} << 20}).at("weight_map");
  std::set<std::string> shards;
  for (const support::JsonMember& m : map.members()) {
    const std::string& shard = m.value.str();
    if (shard.empty() || shard == ".." || shard.find_first_of("/\\") != std::string::npos)
      throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] tensor '{}' lies in \"{}\", expected the name of a file beside the "
                                                  "index", index, m.key, shard));
    shards.insert(shard);
  }
  StoredTensors t;
  for (const std::string& shard : shards) {
    if (!fs::exists(folder + "/" + shard))
      throw Error(GESTALT_NOT_FOUND, fmt::format("[{}] shard '{}' is missing", index, shard));
    t.add(folder + "/" + shard);
  }
  for (const support::JsonMember& m : map.members()) {
    const Place place = t.find(m.key);
    if (!place.entry || fs::path(place.file->path()).filename() != m.value.str())
      throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] tensor '{}' is not in shard '{}'", index, m.key, m.value.str()));
  }
  return t;
}

StoredTensors::Place StoredTensors::find(std::string_view name) const {
  const auto it = places_.find(name);
  return it == places_.end() ? Place{} : it->second;
}

std::vector<std::string_view> StoredTensors::names() const {
  std::vector<std::string_view> all;
  for (const auto& file : files_)
    for (const support::SafetensorsEntry& e : file->entries()) all.push_back(e.name);
  return all;
}

}  // namespace gestalt::format_hf
