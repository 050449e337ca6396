// tokenizer.json of the Hugging Face tokenizers library, where it is a byte-level BPE: gpt2, llama 3, qwen, olmo.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "gestalt/error.hpp"
#include "support/bpe/spelling.h"
#include "support/json.h"

namespace gestalt::support::bpe {
namespace {

using support::Json;

class TokenizerJson {
 public:
  explicit TokenizerJson(const std::string& path)
      : path_(path), root_(support::read_json_file(path, {uint64_t{1} << 28, 64})) {}

  Loaded load() const {
    const Json& model = root_.at("model");
    const std::string type = model.str("type", "BPE");
    if (type != "BPE" || model.boolean("byte_fallback", false) || !byte_level())
      bad(fmt::format("is a {} that is not byte-level, expected a byte-level BPE", type));
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!model.str(key, "").empty()) bad(fmt::format("model.{} is \"{}\", expected none", key, model.str(key)));
    if (model.find("dropout") && !model.at("dropout").is_null() && model.f64("dropout") != 0)
      bad("model.dropout is set");
    normalizer();
    std::vector<Special> added = added_tokens();
    std::set<std::string> names;
    for (const Special& s : added) names.insert(s.text);
    std::vector<std::pair<std::string, int64_t>> tokens;
    for (const auto& [text, id] : model.at("vocab").members())
      if (!names.contains(text)) tokens.emplace_back(text, id.i64());
    Loaded loaded = from_spelled(tokens, merges(model), true, path_, path_);
    if (model.boolean("ignore_merges", false)) loaded.vocabulary.take_whole_pieces();
    loaded.specials.insert(loaded.specials.end(), added.begin(), added.end());
    loaded.pattern = pattern(root_.find("pre_tokenizer"));
    loaded.begin = begin(root_.find("post_processor"));
    return loaded;
  }

 private:
  [[noreturn]] void bad(const std::string& problem) const {
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] {}", path_, problem));
  }

  // The steps of a part: a Sequence's, or the part alone.
  static std::vector<const Json*> steps(const Json* part, std::string_view list) {
    std::vector<const Json*> out;
    if (!part || part->is_null()) return out;
    if (part->str("type") != "Sequence") return {part};
    for (const Json& step : part->at(list).items()) out.push_back(&step);
    return out;
  }

  bool byte_level() const {
    const auto all = steps(root_.find("pre_tokenizer"), "pretokenizers");
    return std::any_of(all.begin(), all.end(), [](const Json* s) { return s->str("type") == "ByteLevel"; });
  }

  void normalizer() const {
    for (const Json* s : steps(root_.find("normalizer"), "normalizers"))
      // NFC leaves text alone that is written as usual; anything else would change it.
      if (s->str("type") != "NFC") bad(fmt::format("normalizer {} is not supported", s->str("type")));
  }

  std::vector<Special> added_tokens() const {
    std::vector<Special> out;
    const Json* list = root_.find("added_tokens");
    if (!list || list->is_null()) return out;
    for (const Json& t : list->items()) {
      for (const char* flag : {"lstrip", "rstrip", "single_word"})
        if (t.boolean(flag, false))
          bad(fmt::format("added token \"{}\" has {}, which is not supported", t.str("content"), flag));
      if (t.i64("id") < 0 || t.i64("id") > (1 << 28))
        bad(fmt::format("added token \"{}\" has id {}", t.str("content"), t.i64("id")));
      out.push_back({t.str("content"), static_cast<int32_t>(t.i64("id"))});
    }
    return out;
  }

  // "a b", or in newer files ["a", "b"].
  std::vector<SpelledMerge> merges(const Json& model) const {
    const ByteSpelling spelling;
    std::vector<SpelledMerge> out;
    for (const Json& m : model.at("merges").items()) {
      SpelledMerge merge{{}, {}, fmt::format("merge {}", out.size())};
      std::string a, b;
      if (m.is_array() && m.size() == 2) {
        a = m.items()[0].str();
        b = m.items()[1].str();
      } else if (m.is_string()) {
        const size_t space = m.str().find(' ');
        a = m.str().substr(0, space);
        if (space != std::string::npos) b = m.str().substr(space + 1);
      }
      if (!spelling.decode(a, &merge.a) || !spelling.decode(b, &merge.b) || merge.a.empty() || merge.b.empty())
        bad(fmt::format("merge {} is no pair of tokens", out.size()));
      out.push_back(std::move(merge));
    }
    return out;
  }

  // GPT-2's cut by ByteLevel itself, or one expression before it.
  std::string pattern(const Json* part) const {
    std::string out;
    for (const Json* s : steps(part, "pretokenizers")) {
      const std::string type = s->str("type");
      if (type == "ByteLevel") {
        if (s->boolean("add_prefix_space", false)) bad("pre_tokenizer has add_prefix_space, expected none");
        if (!s->boolean("use_regex", true)) continue;
        if (!out.empty()) bad("pre_tokenizer cuts by an expression and by ByteLevel's own, expected one of them");
        out = "gpt2";
      } else if (type == "Split" && out.empty() && s->str("behavior") == "Isolated" && !s->boolean("invert", false) &&
                 s->at("pattern").has("Regex")) {
        out = s->at("pattern").str("Regex");
      } else {
        bad(fmt::format("pre_tokenizer {} is not supported, expected one Split by an expression and ByteLevel", type));
      }
    }
    return out;
  }

  // The token that a template puts before every text.
  std::string begin(const Json* part) const {
    for (const Json* s : steps(part, "processors")) {
      const std::string type = s->str("type");
      if (type == "ByteLevel") continue;
      const Json* single = type == "TemplateProcessing" ? s->find("single") : nullptr;
      if (!single) bad(fmt::format("post_processor {} is not supported", type));
      const auto& items = single->items();
      if (items.size() == 1 && items[0].has("Sequence")) continue;
      if (items.size() != 2 || !items[0].has("SpecialToken") || !items[1].has("Sequence"))
        bad("post_processor puts more than one token before a text");
      return items[0].at("SpecialToken").str("id");
    }
    return {};
  }

  std::string path_;
  Json root_;
};

// A token as tokenizer_config.json names it: a string, or an object with its content.
std::string token_text(const Json* value) {
  if (!value || value->is_null()) return {};
  if (value->is_string()) return value->str();
  return value->is_object() ? value->str("content", "") : std::string();
}

}  // namespace

Loaded load_hf(const std::string& path) {
  Loaded loaded;
  try {
    loaded = TokenizerJson(path).load();
  } catch (const Error& e) {
    if (e.message().starts_with("[" + path)) throw;
    throw Error(e.code, fmt::format("[{}] {}", path, e.message()));
  }
  const std::string config = path.substr(0, path.find_last_of('/') + 1) + "tokenizer_config.json";
  if (!file_exists(config)) return loaded;
  const Json roles = support::read_json_file(config);
  const auto token = [&](const char* key) {
    const std::string text = token_text(roles.find(key));
    const bool known =
        std::any_of(loaded.specials.begin(), loaded.specials.end(), [&](const Special& s) { return s.text == text; });
    return known ? text : std::string();
  };
  loaded.bos = token("bos_token");
  loaded.eos = token("eos_token");
  loaded.pad = token("pad_token");
  loaded.unk = token("unk_token");
  return loaded;
}

}  // namespace gestalt::support::bpe
