#include "gestalt/error.hpp"
#include "support/bpe/scanner.h"

namespace gestalt::support::bpe {
namespace {

struct Published {
  std::string_view name;
  PatternKind kind;
  std::string_view regex;
};

constexpr std::string_view kGpt2Regex = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100kRegex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200kRegex =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr Published kPublished[] = {
    {"gpt2", PatternKind::kGpt2, kGpt2Regex},         {"r50k_base", PatternKind::kGpt2, kGpt2Regex},
    {"p50k_base", PatternKind::kGpt2, kGpt2Regex},    {"cl100k_base", PatternKind::kCl100k, kCl100kRegex},
    {"o200k_base", PatternKind::kO200k, kO200kRegex},
};

template <const uint8_t* (*kNext)(const CharClasses&, const uint8_t*, const uint8_t*)>
class HandScanner : public Scanner {
 public:
  explicit HandScanner(std::shared_ptr<const CharClasses> classes) : classes_(std::move(classes)) {}
  const uint8_t* next(const uint8_t*, const uint8_t* p, const uint8_t* end) override {
    return kNext(*classes_, p, end);
  }

 private:
  std::shared_ptr<const CharClasses> classes_;
};

}  // namespace

Pattern::Pattern(std::string_view text) : regex_(text), classes_(std::make_shared<CharClasses>()) {
  for (const Published& known : kPublished) {
    if (text != known.name && text != known.regex) continue;
    kind_ = known.kind;
    regex_ = known.regex;
    return;
  }
  if (text.empty()) throw InvalidArgument("[pattern] is empty, expected a published name or an expression");
  compiled_ = compile_pcre2(regex_);
}

std::unique_ptr<Scanner> Pattern::make_scanner() const {
  switch (kind_) {
    case PatternKind::kGpt2:
      return std::make_unique<HandScanner<next_gpt2>>(classes_);
    case PatternKind::kCl100k:
      return std::make_unique<HandScanner<next_cl100k>>(classes_);
    case PatternKind::kO200k:
      return std::make_unique<HandScanner<next_o200k>>(classes_);
    case PatternKind::kCustom:
      break;
  }
  return bpe::make_pcre2_scanner(compiled_);
}

std::unique_ptr<Scanner> Pattern::make_pcre2_scanner() const {
  return bpe::make_pcre2_scanner(compiled_ ? compiled_ : compile_pcre2(regex_));
}

}  // namespace gestalt::support::bpe
