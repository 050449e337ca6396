// The component "gestalt.bpe".
#include "gestalt/plugin.hpp"
#include "support/bpe/open.h"

namespace gestalt::tokenizer_bpe {
namespace {

using support::bpe::Source;
using support::bpe::Specials;

Source source_of(const Attrs& config) {
  const auto str = [&](std::string_view key) { return std::string(config.str(key)); };
  Source source{str("ranks"),   str("vocab"), str("merges"),
                str("file"),    str("pattern"), {},           {str("bos"), str("eos"), str("pad"), str("unk")}};
  for (const gestalt_str item : config.str_list("special_tokens")) source.special_tokens.emplace_back(view_of(item));
  return source;
}

Specials mode_of(uint64_t flags) {
  if (flags & GESTALT_ENCODE_REFUSE_SPECIAL) return Specials::kRefuse;
  return flags & GESTALT_ENCODE_ALLOW_SPECIAL ? Specials::kAllow : Specials::kAsText;
}

}  // namespace

class BpeTokenizer : public gestalt::Tokenizer {
 public:
  static constexpr std::string_view name = "gestalt.bpe";
  static constexpr ConfigKey keys[] = {
      {.name = "ranks",
       .type = "str",
       .default_value = "\"\"",
       .doc = "tiktoken rank file, or one that `gestalt tokenizer train` wrote"},
      {.name = "vocab", .type = "str", .default_value = "\"\"", .doc = "vocab.json in GPT-2's form"},
      {.name = "merges", .type = "str", .default_value = "\"\"", .doc = "merges.txt in GPT-2's form"},
      {.name = "file", .type = "str", .default_value = "\"\"", .doc = "tokenizer.json of the Hugging Face tokenizers library"},
      {.name = "pattern",
       .type = "str",
       .default_value = "\"\"",
       .doc = "gpt2, r50k_base, p50k_base, cl100k_base, o200k_base or an expression; empty: what the files say"},
      {.name = "special_tokens",
       .type = "str[]",
       .default_value = "[]",
       .doc = "further special tokens, each \"<|text|>=id\""},
      {.name = "bos", .type = "str", .default_value = "\"\"", .doc = "special token that begins a text; empty: none"},
      {.name = "eos",
       .type = "str",
       .default_value = "\"\"",
       .doc = "special token that ends a text; empty: <|endoftext|> if there is one"},
      {.name = "pad", .type = "str", .default_value = "\"\"", .doc = "special token for padding; empty: none"},
      {.name = "unk",
       .type = "str",
       .default_value = "\"\"",
       .doc = "special token for unknown text; empty: none (every byte has a token)"}};

  BpeTokenizer(Host, Attrs config) : engine_(support::bpe::open_tokenizer(source_of(config))) {}

  void encode(std::string_view text, uint64_t flags, std::vector<int32_t>& ids) const override {
    auto scratch = engine_.make_scratch();
    begin(ids);
    engine_.encode(text, mode_of(flags), &scratch, &ids);
  }
  void encode_batch(std::span<const gestalt_str> texts, uint64_t flags, const IdSink& sink) const override {
    auto scratch = engine_.make_scratch();
    std::vector<int32_t> ids;
    for (size_t i = 0; i < texts.size(); ++i) {
      ids.clear();
      begin(ids);
      engine_.encode(view_of(texts[i]), mode_of(flags), &scratch, &ids);
      sink.put(i, ids);
    }
  }
  void decode(std::span<const int32_t> ids, std::string& bytes) const override { engine_.decode(ids, &bytes); }
  int64_t vocab_size() const override { return engine_.vocab_size(); }
  int64_t special(std::string_view role) const override { return engine_.special(role); }
  std::array<uint8_t, 32> fingerprint() const override { return engine_.fingerprint(); }

 private:
  void begin(std::vector<int32_t>& ids) const {
    if (engine_.begin() >= 0) ids.push_back(static_cast<int32_t>(engine_.begin()));
  }

  support::bpe::Tokenizer engine_;
};

GESTALT_COMPONENT(BpeTokenizer)

}  // namespace gestalt::tokenizer_bpe
