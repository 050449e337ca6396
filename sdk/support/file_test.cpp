#include "support/file.h"

#include <sys/stat.h>

#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::support {

TEST_CASE("a committed file replaces the old one, and readers of the old one keep it") {
  const TestFolder folder;
  const std::string path = folder.write("a", "old");
  const ReadFile old(path);
  AtomicFile file(path);
  file.write("new text");
  CHECK(ReadFile(path).read_all() == "old");
  file.commit();
  CHECK(ReadFile(path).read_all() == "new text");
  CHECK(old.read_all() == "old");
  CHECK(folder.num_files() == 1);
}

TEST_CASE("a file without commit leaves nothing") {
  const TestFolder folder;
  { AtomicFile(folder.file("a")).write("x"); }
  CHECK(folder.num_files() == 0);
}

TEST_CASE("files that are absent, folders and pipes are told apart") {
  const TestFolder folder;
  CHECK(contains(error_of([&] { ReadFile(folder.file("none")); }), "4: ["));
  CHECK(contains(error_of([&] { ReadFile(folder.file("")); }), "5: ["));
  REQUIRE(mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  CHECK(contains(error_of([&] { ReadFile(folder.file("pipe")); }), "is not a regular file"));
  CHECK(contains(error_of([&] { AtomicFile(folder.file("no/such")); }), "4: ["));
}

TEST_CASE("a read beyond the end is an error of storage") {
  const TestFolder folder;
  const ReadFile file(folder.write("a", "abc"));
  char bytes[4];
  CHECK(contains(error_of([&] { file.read(1, bytes, 3); }), "7: ["));
}

}  // namespace gestalt::support
