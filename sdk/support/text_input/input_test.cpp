#include "support/text_input/input.h"

#include <cstdlib>
#include <fstream>

#include "gestalt/error.hpp"
#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::support::text_input {
namespace {

void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string text() {
  std::string out;
  for (int i = 0; i < 60'000; ++i) out += "line " + std::to_string(i) + "\n";
  return out;
}

bool packed(const std::string& command) {
  if (std::system(command.c_str()) == 0) return true;
  WARN("SKIP: cannot run " << command);
  return false;
}

}  // namespace

TEST_CASE("plain, gzip, zstd and xz give the same bytes, told by content") {
  const support::TestFolder folder;
  const std::string plain = folder.file("a.txt");
  write(plain, text());
  CHECK(read_input(plain) == text());
  for (const char* tool : {"gzip", "zstd -q", "xz"}) {
    const std::string other = folder.file("packed");
    if (!packed(std::string(tool) + " -c '" + plain + "' > '" + other + "' 2>/dev/null")) continue;
    const std::string lacks = support::error_of([&] { InputStream{other}; });
    if (!lacks.empty()) {  // a build without the library says so
      CHECK(support::contains(lacks, "which this build cannot read"));
      continue;
    }
    CHECK(read_input(other) == text());
    // Cut short, it is refused.
    std::ifstream in(other, std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    write(other, all.substr(0, all.size() / 2));
    CHECK_THROWS_AS(read_input(other), Error);
  }
}

TEST_CASE("lines come without their ends and with their numbers") {
  const support::TestFolder folder;
  write(folder.file("l"), "a\r\n\nlast");
  InputStream input(folder.file("l"));
  LineReader lines(&input);
  std::string line;
  REQUIRE(lines.next(&line));
  CHECK(line == "a");
  REQUIRE(lines.next(&line));
  CHECK(line.empty());
  REQUIRE(lines.next(&line));
  CHECK(line == "last");
  CHECK(lines.number() == 3);
  CHECK_FALSE(lines.next(&line));
}

TEST_CASE("absent files and folders are refused") {
  CHECK_THROWS_AS(InputStream("/nowhere/at/all"), Error);
  CHECK_THROWS_AS(InputStream("/"), Error);
}

}  // namespace gestalt::support::text_input
