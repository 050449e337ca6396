#include "support/bpe/spelling.h"

#include <fmt/format.h>

#include <set>

#include "gestalt/error.hpp"
#include "support/utf8.h"

namespace gestalt::support::bpe {

ByteSpelling::ByteSpelling() {
  bytes_.fill(-1);
  uint32_t next = 256;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    bytes_[printable ? static_cast<uint32_t>(b) : next++] = static_cast<int16_t>(b);
  }
}

bool ByteSpelling::decode(std::string_view text, std::string* out) const {
  out->clear();
  for (uint64_t pos = 0; pos < text.size();) {
    const support::CodePoint c = support::next_code_point(text, pos);
    if (!c.valid || c.value >= bytes_.size() || bytes_[c.value] < 0) return false;
    *out += static_cast<char>(bytes_[c.value]);
    pos += c.size;
  }
  return true;
}

Loaded from_spelled(const std::vector<std::pair<std::string, int64_t>>& tokens, const std::vector<SpelledMerge>& merges,
                    bool keep_unmade, const std::string& tokens_file, const std::string& merges_file) {
  const ByteSpelling spelling;
  std::set<std::string> made;
  for (const SpelledMerge& m : merges) made.insert(m.a + m.b);
  Loaded loaded;
  std::string bytes;
  for (const auto& [text, id] : tokens) {
    if (id < 0 || id > (1 << 28))
      throw Error(GESTALT_DATA_ERROR,
                  fmt::format("[{}] token \"{}\" has id {}, expected 0 or more", tokens_file, text, id));
    const bool spelled = spelling.decode(text, &bytes);
    if (spelled && !bytes.empty() && (bytes.size() == 1 || keep_unmade || made.contains(bytes))) {
      try {
        loaded.vocabulary.add(bytes, static_cast<int32_t>(id));
      } catch (const Error& e) {
        throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] token \"{}\": {}", tokens_file, text, e.message()));
      }
    } else {
      loaded.specials.push_back({text, static_cast<int32_t>(id)});
    }
  }
  std::set<std::pair<int32_t, int32_t>> seen;
  for (const SpelledMerge& m : merges) {
    const auto id_of = [&](const std::string& token) {
      const int32_t id = loaded.vocabulary.find(token.data(), token.size());
      if (id < 0)
        throw Error(GESTALT_DATA_ERROR,
                    fmt::format("[{}] {} uses a token that [{}] lacks", merges_file, m.where, tokens_file));
      return id;
    };
    loaded.listed.push_back({id_of(m.a), id_of(m.b), id_of(m.a + m.b)});
    if (!seen.emplace(loaded.listed.back().a, loaded.listed.back().b).second)
      throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] {} appears twice", merges_file, m.where));
  }
  try {
    loaded.vocabulary.merges_listed(loaded.listed);
  } catch (const Error& e) {
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] {}", tokens_file, e.message()));
  }
  return loaded;
}

}  // namespace gestalt::support::bpe
