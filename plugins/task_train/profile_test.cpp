#include "plugins/task_train/profile.h"

#include "support/json.h"
#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::train {

namespace {

gestalt_profile_event event(const char* op, const char* group, int64_t begin, int64_t duration, double flops) {
  gestalt_profile_event e{};
  e.struct_size = sizeof e;
  e.op = str_of(op);
  e.group = str_of(group);
  e.path = str_of("model.layers.0");
  e.region = str_of("forward");
  e.backend = str_of("gestalt.cpu");
  e.begin_ns = begin;
  e.duration_ns = duration;
  e.flops = flops;
  e.bytes = 100;
  return e;
}

}  // namespace

TEST_CASE("a profile is a trace of whole events and a table with the slowest class first") {
  Profile p("3:4");
  CHECK((!p.covers(2) && p.covers(3) && p.covers(4) && !p.covers(5) && p.ends_with(4)));
  p.add(event("core.add", "element", 1000, 500, 0));
  p.add(event("core.linear", "matrix", 2000, 1500, 3000));
  p.add(event("core.linear", "matrix", 4000, 1500, 3000));
  CHECK(p.file_name() == "profile-3-4.json");
  const support::Json trace = support::parse_json(p.trace(), "trace");
  const auto& events = trace.at("traceEvents").items();
  REQUIRE(events.size() == 3);
  CHECK(events[1].str("name") == "core.linear");
  CHECK(events[1].f64("ts") == 1.0);
  CHECK(events[1].f64("dur") == 1.5);
  const std::string table = p.table();
  CHECK(table.find("forward matrix") < table.find("forward element"));
  CHECK(table.find("2.00") != std::string::npos);  // GFLOP/s
}

TEST_CASE("a range that is none is refused with what was given") {
  for (const char* bad : {"", "3", "0:2", "4:3", "a:b", "1:2x"})
    CHECK(support::contains(support::error_of([&] { Profile p(bad); }), "[--profile] got"));
}

}  // namespace gestalt::train
