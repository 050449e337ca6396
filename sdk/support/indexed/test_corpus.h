// What the tests of this folder share: a scratch folder and small corpora.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/indexed/index_writer.h"
#include "support/test_folder.h"

namespace gestalt::support::indexed {

// A path in this process's own folder, which goes when the process ends.
inline std::string scratch(const std::string& name) {
  static const support::TestFolder folder;
  return folder.file(name);
}

// Documents of one sequence each; token i of document d is d * 1000 + i.
inline std::string write_corpus(const std::string& name, const std::vector<int>& lengths,
                                TokenType type = TokenType::kI32) {
  const std::string prefix = scratch(name);
  IndexWriter writer(prefix, type, 0);
  for (size_t d = 0; d < lengths.size(); ++d) {
    std::vector<int32_t> ids;
    for (int i = 0; i < lengths[d]; ++i) ids.push_back(static_cast<int32_t>(d) * 1000 + i);
    writer.add(ids);
    writer.end_document();
  }
  writer.finish();
  return prefix;
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);  // some file systems write through when an old file is cut to nothing
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace gestalt::support::indexed
