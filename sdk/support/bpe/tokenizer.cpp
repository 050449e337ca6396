#include "support/bpe/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "gestalt/error.hpp"
#include "support/sha256.h"

namespace gestalt::support::bpe {
namespace {

const std::string& pattern_of(const std::string& pattern, const Loaded& loaded) {
  if (!pattern.empty()) return pattern;
  if (loaded.pattern.empty())
    throw Error(
        GESTALT_CONFIG_ERROR,
        "[tokenizer.pattern] is empty and the files do not say it; expected gpt2, cl100k_base, o200k_base or an "
        "expression");
  return loaded.pattern;
}

std::vector<Special> specials_of(const Loaded& loaded, const std::string& pattern) {
  if (!loaded.specials.empty()) return loaded.specials;
  std::vector<Special> known = published_specials(pattern);
  for (const Special& s : known)
    if (loaded.vocabulary.assigned(s.id) || s.id > loaded.vocabulary.size() + 1024) return {};
  return known;
}

}  // namespace

Tokenizer::Tokenizer(Loaded loaded, const std::string& pattern, const std::vector<Special>& more, Roles roles)
    : pattern_(pattern_of(pattern, loaded)), specials_(specials_of(loaded, pattern)), roles_(std::move(roles)) {
  vocabulary_ = std::move(loaded.vocabulary);
  specials_.insert(specials_.end(), more.begin(), more.end());
  std::stable_sort(specials_.begin(), specials_.end(),
                   [](const Special& a, const Special& b) { return a.text.size() > b.text.size(); });
  for (size_t i = 0; i < specials_.size(); ++i) {
    const Special& s = specials_[i];
    for (size_t k = 0; k < i; ++k)
      if (specials_[k].text == s.text)
        throw Error(GESTALT_CONFIG_ERROR, fmt::format("[tokenizer.special_tokens] \"{}\" appears twice", s.text));
    try {
      vocabulary_.add_special(s.text, s.id);
    } catch (const Error& e) {
      throw Error(GESTALT_CONFIG_ERROR, fmt::format("[tokenizer.special_tokens] \"{}\": {}", s.text, e.message()));
    }
    starts_special_[static_cast<uint8_t>(s.text[0])] = 1;
  }
  for (const auto& [role, of_file] : {std::pair(&roles_.bos, &loaded.bos), std::pair(&roles_.eos, &loaded.eos),
                                      std::pair(&roles_.pad, &loaded.pad), std::pair(&roles_.unk, &loaded.unk)})
    if (role->empty()) *role = *of_file;
  if (roles_.eos.empty() && special("<|endoftext|>") >= 0) roles_.eos = "<|endoftext|>";
  for (const std::string* role : {&roles_.bos, &roles_.eos, &roles_.pad, &roles_.unk})
    if (!role->empty() && special(*role) < 0)
      throw Error(GESTALT_CONFIG_ERROR,
                  fmt::format("[tokenizer] a role names \"{}\", which is not a special token", *role));
  if (!loaded.begin.empty()) begin_ = special(loaded.begin);
  make_fingerprint(loaded.listed);
}

void Tokenizer::make_fingerprint(const std::vector<Vocabulary::Listed>& listed) {
  support::Sha256 hash;
  hash.update_field("gestalt.bpe/1");
  hash.update_field(pattern_.regex());
  hash.update_u64(static_cast<uint64_t>(vocabulary_.size()));
  for (int32_t id = 0; id < vocabulary_.size(); ++id) hash.update_field(vocabulary_.token(id));
  hash.update_u64(listed.size());
  for (const auto& m : listed) {
    hash.update_u64(static_cast<uint64_t>(m.a));
    hash.update_u64(static_cast<uint64_t>(m.b));
  }
  hash.update_u64(specials_.size());
  for (const Special& s : specials_) hash.update_u64(static_cast<uint64_t>(s.id));
  if (begin_ >= 0) hash.update_u64(static_cast<uint64_t>(begin_));
  fingerprint_ = hash.finish();
}

Tokenizer::Scratch Tokenizer::make_scratch() const {
  Scratch scratch;
  if (pattern_.kind() == PatternKind::kCustom) scratch.scanner = pattern_.make_scanner();
  return scratch;
}

int64_t Tokenizer::special(std::string_view role) const {
  if (role == "bos")
    role = roles_.bos;
  else if (role == "eos")
    role = roles_.eos;
  else if (role == "pad")
    role = roles_.pad;
  else if (role == "unk")
    role = roles_.unk;
  for (const Special& s : specials_)
    if (s.text == role) return s.id;
  return -1;
}

size_t Tokenizer::find_special(std::string_view text, size_t from, size_t* index) const {
  for (size_t pos = from; pos < text.size(); ++pos) {
    if (!starts_special_[static_cast<uint8_t>(text[pos])]) continue;
    for (size_t i = 0; i < specials_.size(); ++i) {
      if (!text.substr(pos).starts_with(specials_[i].text)) continue;
      *index = i;
      return pos;
    }
  }
  return std::string_view::npos;
}

void Tokenizer::encode_plain(std::string_view text, Scratch* scratch, std::vector<int32_t>* ids) const {
  const auto* start = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* end = start + text.size();
  const auto pieces = [&](auto&& next) {
    for (const uint8_t* p = start; p < end;) {
      const uint8_t* q = next(p);
      const auto* bytes = reinterpret_cast<const char*>(p);
      const auto size = static_cast<size_t>(q - p);
      const int32_t id = vocabulary_.find_whole(bytes, size);
      if (id >= 0) {
        ids->push_back(id);
      } else {
        merge_piece(vocabulary_, bytes, size, &scratch->merge, ids);
      }
      p = q;
    }
  };
  const CharClasses& classes = pattern_.classes();
  switch (pattern_.kind()) {
    case PatternKind::kGpt2:
      return pieces([&](const uint8_t* p) { return next_gpt2(classes, p, end); });
    case PatternKind::kCl100k:
      return pieces([&](const uint8_t* p) { return next_cl100k(classes, p, end); });
    case PatternKind::kO200k:
      return pieces([&](const uint8_t* p) { return next_o200k(classes, p, end); });
    case PatternKind::kCustom:
      return pieces([&](const uint8_t* p) { return scratch->scanner->next(start, p, end); });
  }
}

void Tokenizer::encode(std::string_view text, Specials specials, Scratch* scratch, std::vector<int32_t>* ids) const {
  if (specials == Specials::kAsText || specials_.empty()) return encode_plain(text, scratch, ids);
  for (size_t from = 0; from < text.size();) {
    size_t index = 0;
    const size_t pos = find_special(text, from, &index);
    if (pos == std::string_view::npos) return encode_plain(text.substr(from), scratch, ids);
    const Special& s = specials_[index];
    if (specials == Specials::kRefuse)
      throw Error(GESTALT_DATA_ERROR,
                  fmt::format("[encode] the text holds the special token \"{}\" at byte {}, which is refused here",
                              s.text, pos));
    encode_plain(text.substr(from, pos - from), scratch, ids);
    ids->push_back(s.id);
    from = pos + s.text.size();
  }
}

void Tokenizer::decode(std::span<const int32_t> ids, std::string* bytes) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!vocabulary_.assigned(ids[i]))
      throw InvalidArgument(fmt::format(
          "[decode] id {} at position {} is not a token, expected an assigned id below {}", ids[i], i, vocab_size()));
    *bytes += vocabulary_.token(ids[i]);
  }
}

}  // namespace gestalt::support::bpe
