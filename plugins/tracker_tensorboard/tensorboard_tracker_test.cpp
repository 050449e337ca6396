#include "plugins/tracker_tensorboard/tensorboard_tracker.h"

#include <cstring>
#include <filesystem>
#include <vector>

#include "core/base/host.h"
#include "plugins/tracker_tensorboard/event.h"
#include "support/file.h"
#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::tracker_tensorboard {

namespace {

// The records of a file, checked against their checksums.
std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  for (size_t at = 0; at < file.size();) {
    uint64_t size = 0;
    std::memcpy(&size, file.data() + at, 8);
    const std::string bytes = file.substr(at + 12, size);
    CHECK(record_of(bytes) == file.substr(at, size + 16));
    records.push_back(bytes);
    at += size + 16;
  }
  return records;
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& e : std::filesystem::directory_iterator(folder)) files.push_back(e.path());
  std::sort(files.begin(), files.end());
  return files;
}

struct Run {
  Run(const support::TestFolder& folder, int64_t step) : tracker(Host(core::make_host("test")), Attrs()) {
    tracker.open(folder.file(""), "run", step);
  }
  TensorboardTracker tracker;
};

}  // namespace

TEST_CASE("the checksum is Castagnoli's, and records carry it masked") {
  CHECK(crc32c("123456789") == 0xe3069283u);
  CHECK(crc32c("") == 0);
  const std::string record = record_of("a");
  CHECK(record.size() == 17);
  CHECK(record.substr(0, 8) == std::string("\x01\0\0\0\0\0\0\0", 8));
}

TEST_CASE("a message is in the wire format of protocol buffers") {
  CHECK(Message().varint(1, 150).text() == "\x08\x96\x01");
  CHECK(Message().bytes(2, "testing").text() == "\x12\x07testing");
  CHECK(scalar("x", 1.0).text() == std::string("\x0a\x08\x0a\x01x\x15\x00\x00\x80\x3f", 10));
}

TEST_CASE("a run is one file that begins with its version; a resumed one makes later records void") {
  const support::TestFolder folder;
  {
    Run run(folder, -1);
    const gestalt_metric m[] = {{str_of("loss"), 2.5}, {str_of("lr"), 0.5}};
    run.tracker.write(3, m);
    run.tracker.text(3, "sample", "In the beginning");
    run.tracker.flush();
  }
  const auto first = files_in(folder.file("tensorboard"));
  REQUIRE(first.size() == 1);
  const auto records = records_of(support::ReadFile(first[0].native()).read_all());
  REQUIRE(records.size() == 4);
  CHECK(records[0].find("brain.Event:2") != std::string::npos);
  CHECK(records[1].find("loss") != std::string::npos);
  CHECK(records[3].find("In the beginning") != std::string::npos);
  Run(folder, 2);
  const auto both = files_in(folder.file("tensorboard"));
  REQUIRE(both.size() == 2);
  CHECK(records_of(support::ReadFile(both[1].native()).read_all()).size() == 2);
  Run(folder, -1);
  CHECK(files_in(folder.file("tensorboard")).size() == 1);
}

}  // namespace gestalt::tracker_tensorboard
