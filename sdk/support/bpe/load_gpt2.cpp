#include <fmt/format.h>

#include <array>
#include <set>

#include "gestalt/error.hpp"
#include "support/bpe/load.h"
#include "support/file.h"
#include "support/json.h"
#include "support/utf8.h"

namespace gestalt::support::bpe {
namespace {

// GPT-2 writes byte b as a printable character: itself where Latin-1 has one, else the next one from U+0100 on.
class ByteSpelling {
 public:
  ByteSpelling() {
    bytes_.fill(-1);
    uint32_t next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      bytes_[printable ? static_cast<uint32_t>(b) : next++] = static_cast<int16_t>(b);
    }
  }
  // False when a character stands for no byte.
  bool decode(std::string_view text, std::string* out) const {
    out->clear();
    for (uint64_t pos = 0; pos < text.size();) {
      const support::CodePoint c = support::next_code_point(text, pos);
      if (!c.valid || c.value >= bytes_.size() || bytes_[c.value] < 0) return false;
      *out += static_cast<char>(bytes_[c.value]);
      pos += c.size;
    }
    return true;
  }

 private:
  std::array<int16_t, 512> bytes_;
};

struct Line {
  size_t offset;
  std::string a, b;
};

std::vector<Line> read_merges(const std::string& path, const ByteSpelling& spelling) {
  const support::ReadFile file(path);
  const std::string text = file.read_all();
  std::vector<Line> lines;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    std::string_view line(text.data() + begin, end - begin);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty() && !(begin == 0 && line.starts_with("#version"))) {
      const size_t space = line.find(' ');
      Line merge{begin, {}, {}};
      if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
          !spelling.decode(line.substr(0, space), &merge.a) || !spelling.decode(line.substr(space + 1), &merge.b))
        throw Error(GESTALT_DATA_ERROR,
                    fmt::format("[{}] expected two tokens with one space between at byte {}", path, begin));
      lines.push_back(std::move(merge));
    }
    begin = end + 1;
  }
  return lines;
}

}  // namespace

Loaded load_gpt2(const std::string& vocab_path, const std::string& merges_path) {
  const ByteSpelling spelling;
  const std::vector<Line> merges = read_merges(merges_path, spelling);
  std::set<std::string> made;
  for (const Line& m : merges) made.insert(m.a + m.b);

  support::JsonLimits limits;
  limits.max_bytes = uint64_t{1} << 28;
  const support::Json root = support::read_json_file(vocab_path, limits);
  Loaded loaded;
  loaded.pattern = "gpt2";
  std::string bytes;
  if (!root.is_object())
    throw Error(GESTALT_DATA_ERROR,
                fmt::format("[{}] holds {} at byte 0, expected an object of tokens", vocab_path, root.kind()));
  for (const auto& [text, value] : root.members()) {
    if (!value.is_integer())
      throw Error(GESTALT_DATA_ERROR,
                  fmt::format("[{}] token \"{}\" has {}, expected an id", vocab_path, text, value.kind()));
    const int64_t id = value.i64();
    if (id < 0 || id > (1 << 28))
      throw Error(GESTALT_DATA_ERROR,
                  fmt::format("[{}] token \"{}\" has id {}, expected 0 or more", vocab_path, text, id));
    const bool spelled = spelling.decode(text, &bytes);
    if (spelled && (bytes.size() == 1 || made.contains(bytes))) {
      try {
        loaded.vocabulary.add(bytes, static_cast<int32_t>(id));
      } catch (const Error& e) {
        throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] token \"{}\": {}", vocab_path, text, e.message()));
      }
    } else {
      loaded.specials.push_back({text, static_cast<int32_t>(id)});
    }
  }
  std::set<std::pair<int32_t, int32_t>> seen;
  for (const Line& m : merges) {
    const auto id_of = [&](const std::string& token) {
      const int32_t id = loaded.vocabulary.find(token.data(), token.size());
      if (id < 0)
        throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] merge at byte {} uses a token that [{}] lacks", merges_path,
                                                    m.offset, vocab_path));
      return id;
    };
    loaded.listed.push_back({id_of(m.a), id_of(m.b), id_of(m.a + m.b)});
    if (!seen.emplace(loaded.listed.back().a, loaded.listed.back().b).second)
      throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] merge at byte {} appears twice", merges_path, m.offset));
  }
  try {
    loaded.vocabulary.merges_listed(loaded.listed);
  } catch (const Error& e) {
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] {}", vocab_path, e.message()));
  }
  return loaded;
}

}  // namespace gestalt::support::bpe
