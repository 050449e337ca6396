#pragma once

#include <string>
#include <string_view>

#include "gestalt/format.hpp"

namespace gestalt::format_hf {

// Writes config.json and model.safetensors, or shards of at most `shard_bytes` with their index, into an empty folder.
// One tensor is in memory at a time. An empty family: the first that has the same complete keys of [model].
void save_model(const std::string& folder, const ModelSource& source, std::string_view family, uint64_t shard_bytes);

// Passes a tokenizer on: the files of the folder that `tokenizer_file` lies in.
void copy_tokenizer(const std::string& folder, const std::string& tokenizer_file);

}  // namespace gestalt::format_hf
