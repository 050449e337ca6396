#include "support/sha256.h"

#include "tests/catch_compat.hpp"

namespace gestalt::support {

TEST_CASE("SHA-256 gives the standard's values") {
  CHECK(hex(sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex(sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hex(sha256(std::string(1'000'000, 'a'))) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("the digest does not depend on how the bytes were cut") {
  const std::string text(1000, 'q');
  for (size_t step : {1, 7, 63, 64, 65, 200}) {
    Sha256 hash;
    for (size_t pos = 0; pos < text.size(); pos += step) hash.update(std::string_view(text).substr(pos, step));
    CHECK(hash.finish() == sha256(text));
  }
}

}  // namespace gestalt::support
