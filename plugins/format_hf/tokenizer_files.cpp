#include "plugins/format_hf/tokenizer_files.h"

#include <filesystem>

#include "plugins/format_hf/toml_string.h"

namespace gestalt::format_hf {

namespace fs = std::filesystem;

TokenizerSection tokenizer_section(const std::string& folder) {
  std::error_code ec;
  const auto path = [&](std::string_view name) { return folder + "/" + std::string(name); };
  const auto is_file = [&](std::string_view name) { return fs::is_regular_file(path(name), ec); };
  std::string text;
  if (is_file("tokenizer.json")) {
    text = "file = " + toml_string(path("tokenizer.json")) + "\n";
  } else if (is_file("vocab.json") && is_file("merges.txt")) {
    text = "vocab = " + toml_string(path("vocab.json")) + "\nmerges = " + toml_string(path("merges.txt")) + "\n";
  } else {
    return {};
  }
  return {"gestalt.tokenizer_bpe", "\n[tokenizer]\ntype = \"gestalt.bpe\"\n" + text};
}

}  // namespace gestalt::format_hf
