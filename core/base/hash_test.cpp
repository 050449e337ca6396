#include "core/base/hash.h"

#include "tests/catch_compat.hpp"
#include "tests/temporary_folder.h"
#include "tests/thrown_error.h"

using namespace gestalt::core;

TEST_CASE("SHA-256 gives the published digests") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("A stream in pieces and a file give the digest of the whole") {
  const std::string data(1000003, 'x');
  Sha256 hash;
  for (size_t i = 0; i < data.size(); i += 65537) hash.update(std::string_view(data).substr(i, 65537));
  const std::string expected = sha256_hex(data);
  CHECK(hash.finish_hex() == expected);
  gestalt::test::TemporaryFolder folder;
  CHECK(sha256_file(folder.write("data", data)) == expected);
}

TEST_CASE("The digest of an absent file names the file") {
  const auto e = gestalt::test::thrown_by([] { sha256_file("/nonexistent/file"); });
  CHECK(e.code() == GESTALT_NOT_FOUND);
  CHECK(e.message() == "cannot open /nonexistent/file: No such file or directory");
}
