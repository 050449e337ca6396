#include <fmt/format.h>

#include "gestalt/error.hpp"
#include "support/bpe/spelling.h"
#include "support/file.h"
#include "support/json.h"

namespace gestalt::support::bpe {
namespace {

std::vector<SpelledMerge> read_merges(const std::string& path) {
  const ByteSpelling spelling;
  const support::ReadFile file(path);
  const std::string text = file.read_all();
  std::vector<SpelledMerge> merges;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    std::string_view line(text.data() + begin, end - begin);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty() && !(begin == 0 && line.starts_with("#version"))) {
      const size_t space = line.find(' ');
      SpelledMerge merge{{}, {}, fmt::format("merge at byte {}", begin)};
      if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
          !spelling.decode(line.substr(0, space), &merge.a) || !spelling.decode(line.substr(space + 1), &merge.b))
        throw Error(GESTALT_DATA_ERROR,
                    fmt::format("[{}] expected two tokens with one space between at byte {}", path, begin));
      merges.push_back(std::move(merge));
    }
    begin = end + 1;
  }
  return merges;
}

}  // namespace

Loaded load_gpt2(const std::string& vocab_path, const std::string& merges_path) {
  const std::vector<SpelledMerge> merges = read_merges(merges_path);
  support::JsonLimits limits;
  limits.max_bytes = uint64_t{1} << 28;
  const support::Json root = support::read_json_file(vocab_path, limits);
  if (!root.is_object())
    throw Error(GESTALT_DATA_ERROR,
                fmt::format("[{}] holds {} at byte 0, expected an object of tokens", vocab_path, root.kind()));
  std::vector<std::pair<std::string, int64_t>> tokens;
  for (const auto& [text, value] : root.members()) {
    if (!value.is_integer())
      throw Error(GESTALT_DATA_ERROR,
                  fmt::format("[{}] token \"{}\" has {}, expected an id", vocab_path, text, value.kind()));
    tokens.emplace_back(text, value.i64());
  }
  Loaded loaded = from_spelled(tokens, merges, false, vocab_path, merges_path);
  loaded.pattern = "gpt2";
  return loaded;
}

}  // namespace gestalt::support::bpe
