#include <cmath>
#include <set>

#include "plugins/device_sim/sim_test_device.h"
#include "tests/catch_compat.hpp"

namespace gestalt::device_sim {

using core::Buffer;
using core::Category;
using core::Event;
using core::Graph;
using core::Stream;
using core::Tensor;

namespace {
struct CaptureTest {
  explicit CaptureTest(int seed = 0) : sim({{"seed", seed}}) {
    sim.device->fill(a.data(), 0, 4);
    sim.device->fill(b.data(), 0, 4);
    sim.device->fill(c.data(), 0, 4);
  }
  SimUnderTest sim;
  Buffer a = sim.device->alloc(4, Category::kOther), b = sim.device->alloc(4, Category::kOther),
         c = sim.device->alloc(4, Category::kOther);
  Stream main = sim.device->open_stream(), side = sim.device->open_stream();
  Event fork = sim.device->open_event(), join = sim.device->open_event();
};
}  // namespace

TEST_CASE("captured work does not run until it is replayed, and then each time") {
  CaptureTest t;
  Launch add(add_one, {floats(t.a, 1)}, {floats(t.a, 1)});
  t.sim.device->capture_begin(t.main);
  add(t.sim, t.main);
  add(t.sim, t.main);
  Graph graph = t.sim.device->capture_end(t.main);
  CHECK(read(t.sim, t.a)[0] == 0);
  for (int i = 0; i < 3; ++i) t.sim.device->replay(graph, t.main);
  t.sim.device->sync();
  CHECK(read(t.sim, t.a)[0] == 6);
}

TEST_CASE("a graph keeps the views of the moment of capture, and reads memory at replay") {
  CaptureTest t;
  Launch add(add_one, {floats(t.a, 1)}, {floats(t.b, 1)});
  t.sim.device->capture_begin(t.main);
  add(t.sim, t.main);
  Graph graph = t.sim.device->capture_end(t.main);
  add.outs[0].view.data = t.c.data();  // too late for the graph
  const float changed = 10;
  t.sim.device->copy_to_device(t.a.data(), &changed, 4);
  t.sim.device->replay(graph, t.main);
  t.sim.device->sync();
  CHECK(read(t.sim, t.b)[0] == 11);
  CHECK(read(t.sim, t.c)[0] == 0);
}

TEST_CASE("streams that join through events are captured and keep their order in every replay") {
  for (int seed = 0; seed < 10; ++seed) {
    CaptureTest t(seed);
    Launch first(add_one, {floats(t.a, 1)}, {floats(t.a, 1)}), second(add_one, {floats(t.a, 1)}, {floats(t.b, 1)}),
        third(add_one, {floats(t.b, 1)}, {floats(t.c, 1)});
    t.sim.device->capture_begin(t.main);
    first(t.sim, t.main);
    t.sim.device->record(t.fork, t.main);
    t.sim.device->wait(t.fork, t.side);
    second(t.sim, t.side);
    t.sim.device->record(t.join, t.side);
    t.sim.device->wait(t.join, t.main);
    third(t.sim, t.main);
    Graph graph = t.sim.device->capture_end(t.main);
    CHECK(read(t.sim, t.a)[0] == 0);
    t.sim.device->replay(graph, t.main);
    t.sim.device->sync();
    CHECK(read(t.sim, t.c)[0] == 3);
  }
}

TEST_CASE("a missing event inside a capture shows as different results for different seeds") {
  std::set<float> results;
  for (int seed = 0; seed < 16; ++seed) {
    CaptureTest t(seed);
    Launch produce(add_one, {floats(t.a, 1)}, {floats(t.a, 1)}), consume(add_one, {floats(t.a, 1)}, {floats(t.b, 1)});
    t.sim.device->capture_begin(t.main);
    t.sim.device->record(t.fork, t.main);
    t.sim.device->wait(t.fork, t.side);
    produce(t.sim, t.main);
    consume(t.sim, t.side);  // should wait for produce
    t.sim.device->record(t.join, t.side);
    t.sim.device->wait(t.join, t.main);
    Graph graph = t.sim.device->capture_end(t.main);
    t.sim.device->replay(graph, t.main);
    t.sim.device->sync();
    results.insert(read(t.sim, t.b)[0]);
  }
  CHECK(results == std::set<float>{1.0f, 2.0f});
}

TEST_CASE("waiting, allocating and freeing during a capture is refused and ends it without a graph") {
  auto violation = [](auto f, const char* text) {
    CaptureTest t;
    t.sim.device->capture_begin(t.main);
    CHECK_THROWS_WITH(f(t), Catch::Contains(text));
    CHECK_THROWS_WITH(t.sim.device->capture_end(t.main), Catch::Contains(text));
    // Nothing is left over: the next capture works.
    t.sim.device->capture_begin(t.main);
    Graph graph = t.sim.device->capture_end(t.main);
    t.sim.device->replay(graph, t.main);
    t.sim.device->sync();
  };
  violation([](CaptureTest& t) { t.sim.device->sync(t.main); }, "the host waited");
  violation([](CaptureTest& t) { t.sim.device->sync(); }, "the host waited");
  violation([](CaptureTest& t) { t.sim.device->alloc(4, Category::kOther); }, "alloc was called");
  violation([](CaptureTest& t) { t.sim.device->capture_begin(t.side); }, "second capture");
  violation(
      [](CaptureTest& t) {
        t.sim.device->record(t.fork, t.side);
        t.sim.device->wait(t.fork, t.main);
      },
      "outside the capture");
}

TEST_CASE("a stream that joined and was not waited for makes the capture fail") {
  CaptureTest t;
  Launch add(add_one, {floats(t.a, 1)}, {floats(t.a, 1)});
  t.sim.device->capture_begin(t.main);
  t.sim.device->record(t.fork, t.main);
  t.sim.device->wait(t.fork, t.side);
  add(t.sim, t.side);
  CHECK_THROWS_WITH(t.sim.device->capture_end(t.main), Catch::Contains("was not waited for"));
  // The side stream is an ordinary one again.
  add(t.sim, t.side);
  t.sim.device->sync();
  CHECK(read(t.sim, t.a)[0] == 1);
}

TEST_CASE("an event of an ended capture cannot be waited for") {
  CaptureTest t;
  t.sim.device->capture_begin(t.main);
  t.sim.device->record(t.fork, t.main);
  Graph graph = t.sim.device->capture_end(t.main);
  CHECK_THROWS_WITH(t.sim.device->wait(t.fork, t.side), Catch::Contains("has ended"));
}

TEST_CASE("other streams work on during a capture") {
  CaptureTest t;
  t.sim.device->capture_begin(t.main);
  t.sim.device->fill(t.b.data(), 0, 4, t.side);
  t.sim.device->sync(t.side);
  Graph graph = t.sim.device->capture_end(t.main);
  CHECK(static_cast<bool>(graph));
}

TEST_CASE("copies and fills are captured, and an error in a replay comes out of sync") {
  CaptureTest t;
  float host_in = 5, host_out = 0;
  Buffer gone = t.sim.device->alloc(4, Category::kOther);
  t.sim.device->capture_begin(t.main);
  t.sim.device->copy_to_device(t.a.data(), &host_in, 4, t.main);
  t.sim.device->copy_on_device(t.b.data(), t.a.data(), 4, t.main);
  t.sim.device->copy_to_host(&host_out, t.b.data(), 4, t.main);
  t.sim.device->fill(gone.data(), 0, 4, t.main);
  Graph graph = t.sim.device->capture_end(t.main);
  t.sim.device->replay(graph, t.main);
  t.sim.device->sync();
  CHECK(host_out == 5);
  gone = Buffer();
  t.sim.device->replay(graph, t.main);
  CHECK_THROWS_WITH(t.sim.device->sync(), Catch::Contains("freed memory"));
}

}  // namespace gestalt::device_sim
