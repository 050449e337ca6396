#include "support/bpe/load.h"

#include <fmt/format.h>

#include <charconv>

#include "gestalt/error.hpp"
#include "support/bpe/base64.h"
#include "support/file.h"
#include "support/json.h"

namespace gestalt::support::bpe {
namespace {

constexpr uint64_t kMaxFile = uint64_t{1} << 30;

std::string read_text(const std::string& path) {
  const support::ReadFile file(path);
  if (file.size() > kMaxFile)
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] has {} bytes, expected at most {}", path, file.size(), kMaxFile));
  return file.read_all();
}

[[noreturn]] void bad(const std::string& path, uint64_t offset, std::string_view problem) {
  throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] {} at byte {}", path, problem, offset));
}

void read_sidecar(const support::Json& root, const std::string& path, Loaded* loaded) {
  if (root.str("format") != "gestalt.bpe/1")
    throw Error(GESTALT_DATA_ERROR,
                fmt::format("[{}] format is \"{}\", expected \"gestalt.bpe/1\"", path, root.str("format")));
  loaded->pattern = root.str("pattern");
  loaded->eos = root.str("eos", "");
  const support::Json* specials = root.find("special_tokens");
  if (!specials) return;
  for (const auto& [text, id] : specials->members()) {
    if (id.i64() < 0 || id.i64() > (1 << 28))
      throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] special token \"{}\" has id {}", path, text, id.i64()));
    loaded->specials.push_back({text, static_cast<int32_t>(id.i64())});
  }
}

void load_sidecar(const std::string& path, Loaded* loaded) {
  const support::Json root = support::read_json_file(path);
  try {
    read_sidecar(root, path, loaded);
  } catch (const Error& e) {
    if (e.message().starts_with("[" + path)) throw;
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] {}", path, e.message()));
  }
}

}  // namespace

bool file_exists(const std::string& path) {
  try {
    const support::ReadFile file(path);
    return true;
  } catch (const Error& e) {
    if (e.code == GESTALT_NOT_FOUND) return false;
    throw;
  }
}

Loaded load_tiktoken(const std::string& path) {
  const std::string text = read_text(path);
  Loaded loaded;
  std::string bytes;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    std::string_view line(text.data() + begin, end - begin);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty()) {
      const size_t space = line.find(' ');
      if (space == std::string_view::npos) bad(path, begin, "expected \"base64 rank\"");
      if (!decode_base64(line.substr(0, space), &bytes)) bad(path, begin, "wrong base64");
      int32_t rank = -1;
      const char* last = line.data() + line.size();
      const auto [stop, error] = std::from_chars(line.data() + space + 1, last, rank);
      if (error != std::errc() || stop != last || rank < 0)
        bad(path, begin + space + 1, fmt::format("rank is \"{}\", expected a number", line.substr(space + 1, 32)));
      try {
        loaded.vocabulary.add(bytes, rank);
      } catch (const Error& e) {
        bad(path, begin, e.message());
      }
    }
    begin = end + 1;
  }
  try {
    loaded.vocabulary.merges_by_rank();
  } catch (const Error& e) {
    bad(path, text.size(), e.message());
  }
  if (file_exists(path + ".json")) load_sidecar(path + ".json", &loaded);
  return loaded;
}

std::vector<Special> published_specials(std::string_view pattern) {
  if (pattern == "gpt2" || pattern == "r50k_base" || pattern == "p50k_base") return {{"<|endoftext|>", 50256}};
  if (pattern == "cl100k_base")
    return {{"<|endoftext|>", 100257},
            {"<|fim_prefix|>", 100258},
            {"<|fim_middle|>", 100259},
            {"<|fim_suffix|>", 100260},
            {"<|endofprompt|>", 100276}};
  if (pattern == "o200k_base") return {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}};
  return {};
}

void save_trained(const std::string& path, const Vocabulary& vocabulary, const std::string& pattern,
                  const std::vector<Special>& specials, const std::string& eos) {
  support::AtomicFile ranks(path);
  std::string lines;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.assigned(id)) continue;
    lines += encode_base64(vocabulary.token(id));
    lines += ' ';
    lines += std::to_string(id);
    lines += '\n';
  }
  ranks.write(lines);
  support::Json tokens = support::Json::object();
  for (const Special& s : specials) tokens.set(s.text, static_cast<int64_t>(s.id));
  support::Json root = support::Json::object();
  root.set("format", "gestalt.bpe/1");
  root.set("pattern", pattern);
  root.set("special_tokens", tokens);
  root.set("eos", eos);
  support::AtomicFile sidecar(path + ".json");
  sidecar.write(support::write_json(root, 2) + "\n");
  ranks.commit();
  sidecar.commit();
}

}  // namespace gestalt::support::bpe
