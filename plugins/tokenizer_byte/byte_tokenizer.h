#pragma once

#include "gestalt/tokenizer.hpp"

namespace gestalt::tokenizer_byte {

// Ids 0 to 255 are the bytes; with `eos` id 256 ends a text. The end token has no spelling, so no text encodes to it.
class ByteTokenizer : public Tokenizer {
 public:
  static constexpr std::string_view name = "gestalt.byte";
  static constexpr ConfigKey keys[] = {
      {.name = "eos", .type = "bool", .default_value = "false", .doc = "id 256 is an end-of-text token"}};

  ByteTokenizer(Host host, Attrs config);

  void encode(std::string_view text, uint64_t flags, std::vector<int32_t>& ids) const override;
  void decode(std::span<const int32_t> ids, std::string& bytes) const override;
  int64_t vocab_size() const override { return has_eos_ ? 257 : 256; }
  int64_t special(std::string_view role) const override;
  std::array<uint8_t, 32> fingerprint() const override;

 private:
  bool has_eos_;
};

}  // namespace gestalt::tokenizer_byte
