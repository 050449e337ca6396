#include "plugins/tokenizer_byte/byte_tokenizer.h"

#include <string>

#include "support/sha256.h"

namespace gestalt::tokenizer_byte {

namespace {
constexpr int32_t kEos = 256;
}

ByteTokenizer::ByteTokenizer(Host, Attrs config) : has_eos_(config.boolean("eos", false)) {}

void ByteTokenizer::encode(std::string_view text, uint64_t, std::vector<int32_t>& ids) const {
  const size_t start = ids.size();
  ids.resize(start + text.size());
  for (size_t i = 0; i < text.size(); ++i) ids[start + i] = static_cast<unsigned char>(text[i]);
}

void ByteTokenizer::decode(std::span<const int32_t> ids, std::string& bytes) const {
  bytes.reserve(bytes.size() + ids.size());
  for (int32_t id : ids) {
    if (id < 0 || id >= vocab_size()) {
      throw InvalidArgument("[gestalt.byte] id outside the vocabulary, got " + std::to_string(id) + ", expected 0 to " +
                            std::to_string(vocab_size() - 1));
    }
    if (id != kEos) bytes.push_back(static_cast<char>(id));
  }
}

int64_t ByteTokenizer::special(std::string_view role) const { return has_eos_ && role == "eos" ? kEos : -1; }

std::array<uint8_t, 32> ByteTokenizer::fingerprint() const {
  return support::sha256(has_eos_ ? "gestalt.byte 1, eos" : "gestalt.byte 1");
}

GESTALT_COMPONENT(ByteTokenizer)

}  // namespace gestalt::tokenizer_byte
