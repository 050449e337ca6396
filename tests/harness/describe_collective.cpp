#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

// Among one rank every collective gives back what it got.
std::vector<Values> same(const Inputs& in) { return {in[0]}; }

std::vector<Description> make() {
  const core::Attrs axis = {{"axis", std::string("tp")}};
  auto one = [&](const char* op, core::Attrs attrs) {
    Description d;
    d.op = op;
    d.reference = same;
    d.cases = {{"matrix", {real({3, 4})}, attrs}, {"empty", {real({0, 4})}, attrs}};
    d.any_rank = true;
    return d;
  };
  core::Attrs root = axis, shift = axis, along = axis;
  root.set("root", int64_t{0});
  shift.set("shift", int64_t{1});
  along.set("dim", int64_t{1});
  return {one("core.all_reduce", axis),        one("core.copy_to_region", axis),
          one("core.all_gather", along),       one("core.reduce_scatter", along),
          one("core.all_to_all", axis),        one("core.broadcast_rank", root),
          one("core.ring_shift", shift)};
}

const Family kFamily("collective", make);

}  // namespace

}  // namespace gestalt::harness
