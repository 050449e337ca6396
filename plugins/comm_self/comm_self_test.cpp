#include "plugins/comm_self/comm_self.h"

#include <vector>

#include "core/runtime/device.h"
#include "core/tensor/tensor.h"
#include "plugins/device_sim/sim_component.h"
#include "tests/catch_compat.hpp"

namespace gestalt::comm_self {

namespace {

// On the simulated device, so that a copy that is not in order of the stream, or not by the device, shows.
struct SelfOnSim {
  SelfOnSim() {
    void* sim = nullptr;
    core::check(host, device_sim::sim_component().create(host, nullptr, 0, &sim));
    device = std::make_unique<core::Device>(host, &device_sim::sim_table(), sim,
                                            std::shared_ptr<void>(sim, device_sim::sim_component().destroy));
    core::check(host, self_component().create(host, nullptr, 0, &self));
    const int64_t rank = 0;
    core::check(host, self_table().group_open(self, &rank, 1, &group));
    for (core::Buffer* b : {&a, &b_, &c}) *b = device->alloc(16, core::Category::kOther);
    stream = device->open_stream();
    const float values[4] = {1, 2, 3, 4};
    device->copy_to_device(a.data(), values, 16);
    device->fill(b_.data(), 0, 16);
    device->fill(c.data(), 0, 16);
    in = core::Tensor(GESTALT_F32, {4}, a.data()).on(GESTALT_DEVICE_SIM, 0);
    out = core::Tensor(GESTALT_F32, {4}, b_.data()).on(GESTALT_DEVICE_SIM, 0);
  }
  ~SelfOnSim() { self_component().destroy(self); }

  void ok(gestalt_status* status) { core::check(host, status); }
  std::string error(gestalt_status* status) {
    REQUIRE(status);
    return core::take(status).message();
  }
  std::vector<float> result() {
    std::vector<float> values(4);
    device->copy_to_host(values.data(), b_.data(), 16, stream);
    device->sync(stream);
    return values;
  }

  const gestalt_host* host = core::make_host("test.comm_self");
  std::unique_ptr<core::Device> device;
  core::Buffer a, b_, c;
  core::Stream stream;
  core::Tensor in, out;
  void *self = nullptr, *group = nullptr;
};

const std::vector<float> kSent = {1, 2, 3, 4};

}  // namespace

TEST_CASE("the world is one rank, and groups hold that rank or nothing") {
  SelfOnSim t;
  int64_t rank = -1, size = -1;
  t.ok(self_table().world(t.self, &rank, &size));
  CHECK(rank == 0);
  CHECK(size == 1);
  CHECK(t.group != nullptr);
  void* empty = &rank;
  t.ok(self_table().group_open(t.self, nullptr, 0, &empty));
  CHECK(empty == nullptr);
  const int64_t other[] = {0, 3};
  CHECK_THAT(t.error(self_table().group_open(t.self, other, 2, &empty)), Catch::Contains("got 3"));
}

TEST_CASE("every collective of one rank is a copy in order of the stream") {
  const int64_t count = 4;
  for (int which = 0; which < 7; ++which) {
    SelfOnSim t;
    CAPTURE(which);
    void *g = t.group, *s = t.stream.get();
    const gestalt_view *in = &t.in.view, *out = &t.out.view;
    switch (which) {
      case 0:
      case 1:
      case 2:
        t.ok(self_table().all_reduce(t.self, g, in, out, which, s));
        break;
      case 3:
        t.ok(self_table().all_gather(t.self, g, in, out, s));
        break;
      case 4:
        t.ok(self_table().reduce_scatter(t.self, g, in, out, GESTALT_REDUCE_SUM, s));
        break;
      case 5:
        t.ok(self_table().all_to_all(t.self, g, in, &count, out, &count, s));
        break;
      case 6:
        t.ok(self_table().broadcast(t.self, g, in, out, 0, s));
        break;
    }
    CHECK(t.result() == kSent);
  }
}

TEST_CASE("in place nothing happens, not even a copy") {
  SelfOnSim t;
  t.ok(self_table().all_reduce(t.self, t.group, &t.in.view, &t.in.view, GESTALT_REDUCE_SUM, t.stream.get()));
  t.device->sync();
}

TEST_CASE("all_to_all moves as many elements as the counts say") {
  SelfOnSim t;
  const int64_t two = 2, five = 5;
  t.ok(self_table().all_to_all(t.self, t.group, &t.in.view, &two, &t.out.view, &two, t.stream.get()));
  CHECK(t.result() == std::vector<float>{1, 2, 0, 0});
  CHECK_THAT(t.error(self_table().all_to_all(t.self, t.group, &t.in.view, &five, &t.out.view, &five, t.stream.get())),
             Catch::Contains("got 5 to send"));
}

TEST_CASE("a batch matches sends with receives to this rank in order") {
  SelfOnSim t;
  core::Tensor third = core::Tensor(GESTALT_F32, {2, 2}, t.c.data()).on(GESTALT_DEVICE_SIM, 0);
  t.ok(self_table().batch(t.self, 1));
  t.ok(self_table().recv(t.self, t.group, &third.view, 0, t.stream.get()));
  t.ok(self_table().send(t.self, t.group, &t.in.view, 0, t.stream.get()));
  t.ok(self_table().send(t.self, t.group, &third.view, 0, t.stream.get()));
  t.ok(self_table().recv(t.self, t.group, &t.out.view, 0, t.stream.get()));
  t.ok(self_table().batch(t.self, 0));
  CHECK(t.result() == kSent);
}

TEST_CASE("unmatched, unbatched and foreign messages are errors, and the next batch is clean") {
  SelfOnSim t;
  CHECK_THAT(t.error(self_table().send(t.self, t.group, &t.in.view, 0, t.stream.get())), Catch::Contains("one batch"));
  t.ok(self_table().batch(t.self, 1));
  CHECK_THAT(t.error(self_table().batch(t.self, 1)), Catch::Contains("open already"));
  CHECK_THAT(t.error(self_table().recv(t.self, t.group, &t.out.view, 2, t.stream.get())), Catch::Contains("got 2"));
  t.ok(self_table().send(t.self, t.group, &t.in.view, 0, t.stream.get()));
  CHECK_THAT(t.error(self_table().batch(t.self, 0)), Catch::Contains("got 1 and 0"));
  t.ok(self_table().batch(t.self, 1));
  t.ok(self_table().batch(t.self, 0));
}

TEST_CASE("wrong roots, reductions and sizes are refused with the value") {
  SelfOnSim t;
  core::Tensor small = core::Tensor(GESTALT_F32, {3}, t.c.data()).on(GESTALT_DEVICE_SIM, 0);
  void* s = t.stream.get();
  CHECK_THAT(t.error(self_table().broadcast(t.self, t.group, &t.in.view, &t.out.view, 1, s)), Catch::Contains("got 1"));
  CHECK_THAT(t.error(self_table().all_reduce(t.self, t.group, &t.in.view, &t.out.view, 9, s)),
             Catch::Contains("got 9"));
  CHECK_THAT(t.error(self_table().all_gather(t.self, t.group, &t.in.view, &small.view, s)), Catch::Contains("4 and 3"));
}

TEST_CASE("after an abort every call fails") {
  SelfOnSim t;
  t.ok(self_table().progress(t.self));
  t.ok(self_table().barrier(t.self, t.group));
  self_table().abort(t.self);
  CHECK_THAT(t.error(self_table().progress(t.self)), Catch::Contains("aborted"));
  CHECK_THAT(t.error(self_table().barrier(t.self, t.group)), Catch::Contains("aborted"));
}

}  // namespace gestalt::comm_self
