#include "plugins/tokenizer_byte/byte_tokenizer.h"

#include "core/base/host.h"
#include "tests/catch_compat.hpp"

namespace gestalt::tokenizer_byte {

namespace {

ByteTokenizer make(bool eos) {
  const Attr config[] = {{"eos", eos}};
  return ByteTokenizer(Host(nullptr), Attrs(config, 1));
}

}  // namespace

TEST_CASE("every byte is its own id and comes back") {
  const ByteTokenizer tokenizer = make(false);
  std::string text, back;
  for (int byte = 0; byte < 256; ++byte) text.push_back(static_cast<char>(byte));
  std::vector<int32_t> ids;
  tokenizer.encode(text, 0, ids);
  REQUIRE(ids.size() == 256);
  CHECK(ids[200] == 200);
  tokenizer.decode(ids, back);
  CHECK(back == text);
  CHECK(tokenizer.vocab_size() == 256);
  CHECK(tokenizer.special("eos") == -1);
}

TEST_CASE("the end token exists only when asked for, and decodes to nothing") {
  const ByteTokenizer tokenizer = make(true);
  CHECK(tokenizer.vocab_size() == 257);
  CHECK(tokenizer.special("eos") == 256);
  CHECK(tokenizer.special("bos") == -1);
  std::string text;
  tokenizer.decode(std::vector<int32_t>{'a', 256}, text);
  CHECK(text == "a");
  CHECK(tokenizer.fingerprint() != make(false).fingerprint());
}

TEST_CASE("an id outside the vocabulary is an invalid argument that names it, through the C table too") {
  const gestalt_component& entry = detail::component_entry<ByteTokenizer>;
  const gestalt_host* host = core::make_host("test");
  void* self = nullptr;
  REQUIRE(entry.create(host, nullptr, 0, &self) == nullptr);
  const TokenizerRef tokenizer(host, static_cast<const gestalt_tokenizer_1*>(entry.table), self);
  CHECK(tokenizer.decode(tokenizer.encode("na\xC3\xAFve")) == "na\xC3\xAFve");
  for (int32_t id : {-1, 256}) {
    try {
      tokenizer.decode(std::vector<int32_t>{id});
      FAIL("id " << id << " was taken");
    } catch (const Error& error) {
      CHECK(error.code == GESTALT_INVALID_ARGUMENT);
      CHECK(error.message().find("got " + std::to_string(id) + ", expected 0 to 255") != std::string::npos);
    }
  }
  entry.destroy(self);
}

}  // namespace gestalt::tokenizer_byte
