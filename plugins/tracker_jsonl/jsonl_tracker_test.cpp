#include "plugins/tracker_jsonl/jsonl_tracker.h"

#include <cmath>
#include <limits>

#include "core/base/host.h"
#include "support/file.h"
#include "support/json.h"
#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::tracker_jsonl {

namespace {

using support::contains;
using support::error_of;
using support::ReadFile;
using support::TestFolder;

struct Run {
  explicit Run(const TestFolder& folder, int64_t step) : tracker(Host(core::make_host("test")), Attrs()) {
    tracker.open(folder.file(""), "run", step);
  }
  void write(int64_t step, double loss) {
    const gestalt_metric metric = {str_of("loss"), loss};
    tracker.write(step, {&metric, 1});
  }
  JsonlTracker tracker;
};

}  // namespace

TEST_CASE("a record is one JSON object a line, with numbers that come back exactly") {
  const TestFolder folder;
  Run run(folder, -1);
  const gestalt_metric metrics[] = {{str_of("loss"), 0.1},
                                    {str_of("tokens"), 8192},
                                    {str_of("a\"b"), 1e300},
                                    {str_of("n"), std::nan("")},
                                    {str_of("i"), -std::numeric_limits<double>::infinity()}};
  run.tracker.write(3, metrics);
  run.write(4, 2.5);
  run.tracker.flush();
  const std::string text = ReadFile(folder.file("metrics.jsonl")).read_all();
  CHECK(text ==
        "{\"step\":3,\"loss\":0.1,\"tokens\":8192,\"a\\\"b\":1e+300,\"n\":\"NaN\",\"i\":\"-Infinity\"}\n"
        "{\"step\":4,\"loss\":2.5}\n");
  CHECK(support::parse_json(text.substr(0, text.find('\n')), "t").f64("loss") == 0.1);
}

TEST_CASE("a text is a line of its own, and goes with its step") {
  const TestFolder folder;
  {
    Run run(folder, -1);
    run.tracker.text(0, "config", "a = 1\nb = \"x\"\n");
    run.tracker.text(2, "sample", "In the beginning");
  }
  Run run(folder, 1);
  CHECK(ReadFile(folder.file("metrics.jsonl")).read_all() ==
        "{\"step\":0,\"text\":\"config\",\"content\":\"a = 1\\nb = \\\"x\\\"\\n\"}\n");
}

TEST_CASE("a resumed run drops the lines of later steps and a torn last line, and goes on") {
  const TestFolder folder;
  {
    Run run(folder, -1);
    for (int64_t step = 1; step <= 5; ++step) run.write(step, 0.5);
  }
  const std::string old = ReadFile(folder.file("metrics.jsonl")).read_all();
  folder.write("metrics.jsonl", old + "{\"step\":2,\"lo");
  {
    Run run(folder, 3);
    run.write(4, 0.25);
  }
  CHECK(
      ReadFile(folder.file("metrics.jsonl")).read_all() ==
      "{\"step\":1,\"loss\":0.5}\n{\"step\":2,\"loss\":0.5}\n{\"step\":3,\"loss\":0.5}\n{\"step\":4,\"loss\":0.25}\n");
  CHECK(folder.num_files() == 1);
}

TEST_CASE("a new run starts an empty file") {
  const TestFolder folder;
  folder.write("metrics.jsonl", "{\"step\":0}\n{\"step\":1}\n");
  Run run(folder, -1);
  CHECK(ReadFile(folder.file("metrics.jsonl")).size() == 0);
}

TEST_CASE("a name twice in one record and a folder that is absent are refused") {
  const TestFolder folder;
  Run run(folder, -1);
  const gestalt_metric twice[] = {{str_of("x"), 1}, {str_of("x"), 2}}, step[] = {{str_of("step"), 1}};
  CHECK(contains(error_of([&] { run.tracker.write(1, twice); }), "1: [metrics] name twice in one record, got \"x\""));
  CHECK(contains(error_of([&] { run.tracker.write(1, step); }), "got \"step\""));
  JsonlTracker lost(Host(core::make_host("test")), Attrs());
  CHECK(contains(error_of([&] { lost.open(folder.file("none"), "run", -1); }), "7: ["));
  CHECK(contains(error_of([&] { lost.write(1, {}); }), "1: [metrics] write before open"));
}

}  // namespace gestalt::tracker_jsonl
