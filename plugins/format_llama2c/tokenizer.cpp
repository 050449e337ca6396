// The tokenizer of a llama2.c vocabulary file.
#include <string>

#include "gestalt/plugin.hpp"
#include "plugins/format_llama2c/vocabulary.h"
#include "support/sha256.h"

namespace gestalt::format_llama2c {

class Llama2cTokenizer : public Tokenizer {
 public:
  static constexpr std::string_view name = "gestalt.llama2c";
  static constexpr ConfigKey keys[] = {
      {.name = "file", .type = "file", .doc = "vocabulary: scores, lengths and bytes", .required = true},
      {.name = "bos", .type = "bool", .default_value = "true", .doc = "begin every text with <s>"}};

  Llama2cTokenizer(Host, Attrs c) : vocabulary_(Vocabulary::read(std::string(c.str("file")))), bos_(c.boolean("bos")) {}

  void encode(std::string_view text, uint64_t, std::vector<int32_t>& ids) const override {
    if (bos_) ids.push_back(kBegin);
    vocabulary_.encode(text, ids);
  }
  // The space that encoding puts before a text goes again, but only after <s>: ids from the middle keep theirs.
  void decode(std::span<const int32_t> ids, std::string& bytes) const override {
    bool begins = false;
    for (int32_t id : ids) {
      if (id < 0 || id >= vocab_size())
        throw InvalidArgument("[gestalt.llama2c] id outside the vocabulary, got " + std::to_string(id) + ", expected 0 to " +
                              std::to_string(vocab_size() - 1));
      std::string_view piece = vocabulary_.bytes(id);
      if (begins && !piece.empty() && piece[0] == ' ') piece.remove_prefix(1);
      begins = id == kBegin;
      bytes += piece;
    }
  }
  int64_t vocab_size() const override { return vocabulary_.size(); }
  int64_t special(std::string_view role) const override {
    if (role == "bos" || role == "<s>") return kBegin;
    if (role == "eos" || role == "</s>") return kEnd;
    return role == "unk" || role == "<unk>" ? kUnknown : -1;
  }
  std::array<uint8_t, 32> fingerprint() const override {
    std::string all = bos_ ? "gestalt.llama2c 1, bos\n" : "gestalt.llama2c 1\n";
    for (size_t i = 0; i < vocabulary_.pieces().size(); ++i)
      all += std::to_string(vocabulary_.scores()[i]) + " " + std::to_string(vocabulary_.pieces()[i].size()) + " " +
             vocabulary_.pieces()[i] + "\n";
    return support::sha256(all);
  }

 private:
  Vocabulary vocabulary_;
  bool bos_;
};
GESTALT_COMPONENT(Llama2cTokenizer)

}  // namespace gestalt::format_llama2c
