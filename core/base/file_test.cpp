#include "core/base/file.h"

#include <sys/stat.h>

#include "tests/catch_compat.hpp"
#include "tests/temporary_folder.h"
#include "tests/thrown_error.h"

using namespace gestalt::core;
using gestalt::test::TemporaryFolder;
using gestalt::test::thrown_by;

TEST_CASE("A file of exactly the limit is read, one byte more is refused") {
  TemporaryFolder folder;
  const auto path = folder.write("a", std::string(100, 'x'));
  CHECK(read_file(path, 100) == std::string(100, 'x'));
  const auto e = thrown_by([&] { read_file(path, 99); });
  CHECK(e.code() == GESTALT_DATA_ERROR);
  CHECK_THAT(e.message(), Catch::Contains("got 100 bytes, expected at most 99"));
}

TEST_CASE("What is not a regular file is refused without waiting") {
  TemporaryFolder folder;
  REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(thrown_by([&] { read_file(folder.path() / "pipe", 10); }).message(),
             Catch::Contains("not a regular file"));
  CHECK_THAT(thrown_by([&] { read_file(folder.path(), 10); }).message(), Catch::Contains("not a regular file"));
  CHECK(thrown_by([] { read_file("/dev/zero", 10); }).code() == GESTALT_IO_ERROR);
}

TEST_CASE("An atomic write replaces the file and leaves nothing beside it") {
  TemporaryFolder folder;
  const auto path = folder.write("a", "old");
  write_file_atomic(path, "new content");
  CHECK(read_file(path, 100) == "new content");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("A write into an absent folder names the file and leaves nothing") {
  TemporaryFolder folder;
  const auto e = thrown_by([&] { write_file_atomic(folder.path() / "no" / "a", "x"); });
  CHECK(e.code() == GESTALT_NOT_FOUND);
  CHECK_THAT(e.message(), Catch::Contains("no/a: No such file or directory"));
}

TEST_CASE("A write over a folder fails and removes its part file") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "a");
  CHECK(thrown_by([&] { write_file_atomic(folder.path() / "a", "x"); }).code() == GESTALT_IO_ERROR);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}
