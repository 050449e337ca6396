#include "support/bpe/open.h"

#include <fmt/format.h>

#include <charconv>

#include "gestalt/error.hpp"

namespace gestalt::support::bpe {
namespace {

Loaded load(const Source& s) {
  const bool both = !s.vocab.empty() && !s.merges.empty(), none = s.vocab.empty() && s.merges.empty();
  if (!s.ranks.empty() && none && s.file.empty()) return load_tiktoken(s.ranks);
  if (s.ranks.empty() && both && s.file.empty()) return load_gpt2(s.vocab, s.merges);
  if (s.ranks.empty() && none && !s.file.empty()) return load_hf(s.file);
  throw Error(GESTALT_CONFIG_ERROR,
              fmt::format("[tokenizer] got ranks \"{}\", vocab \"{}\", merges \"{}\", file \"{}\", expected one of "
                          "ranks, both vocab and merges, or file",
                          s.ranks, s.vocab, s.merges, s.file));
}

Special parse_special(const std::string& text) {
  const size_t equals = text.rfind('=');
  int32_t id = -1;
  const char* end = text.data() + text.size();
  if (equals == std::string::npos || equals == 0 || std::from_chars(text.data() + equals + 1, end, id).ptr != end ||
      id < 0)
    throw Error(GESTALT_CONFIG_ERROR,
                fmt::format("[tokenizer.special_tokens] got \"{}\", expected \"<|text|>=id\"", text));
  return {text.substr(0, equals), id};
}

}  // namespace

Tokenizer open_tokenizer(const Source& source) {
  std::vector<Special> more;
  for (const std::string& text : source.special_tokens) more.push_back(parse_special(text));
  return Tokenizer(load(source), source.pattern, more, source.roles);
}

}  // namespace gestalt::support::bpe
