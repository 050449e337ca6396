#include "core/program/executable.h"

#include <cmath>

#include "tests/program/recording.h"
#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;
using namespace gestalt::core::test;
using Catch::Contains;
using gestalt::test::thrown_by;

namespace {

FakeKernel fixed_shape(const std::string& op) {
  FakeKernel k;
  k.op = op;
  k.flags &= ~uint64_t{GESTALT_KERNEL_ANY_SHAPE};
  return k;
}

std::vector<FakeKernel> relu_is(FakeKernel relu) {
  std::vector<FakeKernel> all = core_kernels();
  std::erase_if(all, [](const FakeKernel& k) { return k.op == "core.relu"; });
  relu.op = "core.relu";
  all.push_back(relu);
  return all;
}

}  // namespace

TEST_CASE("a failing kernel is reported with op and place, and the program can run again") {
  FakeKernel relu;
  relu.run_fails = "disk on fire";
  Recording r(relu_is(relu));
  r.program->outputs["y"] = r.op("core.relu", {r.input("x", {2})});
  r.compile();
  for (int i = 0; i < 2; ++i) {
    const auto e = thrown_by([&] { r.run(); });
    CHECK(e.code() == GESTALT_DATA_ERROR);
    CHECK_THAT(e.message(), Contains("core.relu at model.test") && Contains("disk on fire"));
  }
}

TEST_CASE("run node by node finds the first value that is not finite") {
  Recording r;
  Value* x = r.input("x", {3});
  r.program->outputs["z"] = r.op("core.neg", {r.op("core.div", {r.op("core.relu", {x}), x})});
  r.compile();
  r.set("batch:x", {1, 2, 4});
  r.executable->run_eager(r.streams, false, true);
  CHECK(r.get("z") == std::vector<double>{-1, -1, -1});
  r.set("batch:x", {1, 0, 4});
  const auto e = thrown_by([&] { r.executable->run_eager(r.streams, false, true); });
  CHECK(e.code() == GESTALT_VALIDATION);
  CHECK_THAT(e.message(), Contains("[core.div at model.test] output 'y' element 1") && Contains("nan") && Contains("forward"));
  r.executable->run_eager(r.streams, false, false);
}

TEST_CASE("sizes change between runs without new plans, up to the maximum") {
  Recording r;
  const int64_t t = r.dims.named("tokens", 8);
  Value* x = r.input("x", {t, 2});
  r.program->outputs["y"] = r.op("core.sum", {r.op("core.relu", {x})}, {{"dims", std::vector<int64_t>{0}}});
  r.compile();
  r.set("batch:x", std::vector<double>(16, 1));
  for (const int64_t n : {3, 8, 1, 0}) {
    r.executable->set_dims({{"tokens", n}});
    r.run();
    CHECK(r.get("y") == std::vector<double>(2, static_cast<double>(n)));
  }
  CHECK(thrown_by([&] { r.executable->set_dims({{"tokens", 9}}); }).code() == GESTALT_INVALID_ARGUMENT);
}

TEST_CASE("kernels that serve one size are prepared once for each") {
  Recording r(relu_is(fixed_shape("core.relu")));
  const int64_t t = r.dims.named("tokens", 8);
  r.program->outputs["y"] = r.op("core.relu", {r.input("x", {t})});
  r.compile();
  CHECK(FakePlugin::states_alive() == 1);
  r.set("batch:x", std::vector<double>(8, 2));
  for (const int64_t n : {3, 8, 3, 5, 3}) {
    r.executable->set_dims({{"tokens", n}});
    r.run();
    CHECK(r.get("y") == std::vector<double>(static_cast<size_t>(n), 2));
  }
  CHECK(FakePlugin::states_alive() == 3);  // for 8, 3 and 5
}

TEST_CASE("a kernel that fails to prepare for a size fails each time it is asked, and never runs unprepared") {
  Recording r(relu_is(fixed_shape("core.relu")));
  const int64_t t = r.dims.named("tokens", 8);
  r.program->outputs["y"] = r.op("core.relu", {r.input("x", {t})});
  r.compile();
  auto& kernel = r.kernel("core.relu");
  kernel.refuses = "five is right out";
  for (int i = 0; i < 2; ++i)
    CHECK_THAT(thrown_by([&] { r.executable->set_dims({{"tokens", 5}}); }).message(),
               Contains("core.relu at model.test") && Contains("five is right out"));
  kernel.refuses.clear();
  r.executable->set_dims({{"tokens", 5}});
  r.run();
  CHECK(r.get("y") == std::vector<double>(5, 0));
}

TEST_CASE("workspaces are there, as large and as aligned as asked") {
  FakeKernel relu;
  relu.workspace = 1000;
  relu.workspace_align = 4096;
  Recording r(relu_is(relu));
  Value* x = r.input("x", {100});
  r.program->outputs["y"] = r.op("core.add", {r.op("core.relu", {x}), r.op("core.relu", {x})});
  r.compile();
  r.set("batch:x", std::vector<double>(100, 3));
  r.run();  // the kernel fills its workspace
  CHECK(r.get("y") == std::vector<double>(100, 6));
}

TEST_CASE("what a binding point is given later holds from the next run on") {
  Recording r;
  r.program->outputs["y"] = r.op("core.neg", {r.input("x", {2})});
  r.compile();
  double other[2] = {5, 7};
  r.executable->bind_input("batch:x", other);
  r.executable->bind_input("batch:unknown", other);  // nothing reads it
  r.run();
  CHECK(r.get("y") == std::vector<double>{-5, -7});
}

TEST_CASE("an output may be an input, or a view of one") {
  Recording r;
  Value* x = r.input("x", {2, 3});
  r.program->outputs["x"] = x;
  r.program->outputs["t"] = r.op("core.transpose", {x}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}});
  r.compile();
  r.set("batch:x", {1, 2, 3, 4, 5, 6});
  r.run();
  CHECK(r.get("x") == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(r.get("t") == std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK(thrown_by([&] { r.executable->output("z"); }).code() == GESTALT_INTERNAL);
}

TEST_CASE("too few streams or arenas are refused") {
  Recording r;
  r.program->outputs["a"] = r.op("core.relu", {r.input("x", {3})});
  r.program->outputs["b"] = r.op("core.neg", {r.input("x", {3})});
  r.program->nodes[1]->stream = 1;
  r.compile();
  std::vector<Stream> one;
  one.push_back(r.device->open_stream());
  CHECK(thrown_by([&] { r.executable->run(one, false); }).code() == GESTALT_INTERNAL);
  CHECK(thrown_by([&] { r.executable->attach({}); }).code() == GESTALT_INTERNAL);
}

TEST_CASE("a device that cannot capture says so") {
  Recording r;
  r.compile();
  std::string why;
  CHECK_FALSE(r.executable->capturable(&why));
  CHECK_THAT(why, Contains("cannot capture"));
}
