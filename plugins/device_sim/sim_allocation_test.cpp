// Counts every operator new of this executable, on all threads.
#include <cstdlib>
#include <new>

#include "plugins/device_sim/sim_test_device.h"
#include "tests/catch_compat.hpp"

namespace {
std::atomic<int64_t> g_allocations{0};
}

// Not inlined: g++ would take free() in them for a mismatch with new.
[[gnu::noinline]] void* operator new(size_t size) {
  ++g_allocations;
  if (void* data = std::malloc(size)) return data;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* data) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, size_t) noexcept { std::free(data); }

namespace gestalt::device_sim {

TEST_CASE("launches, copies, events and replays allocate nothing once warm") {
  SimUnderTest sim({{"max_delay_us", 0}});
  core::Buffer a = sim.device->alloc(4, core::Category::kOther), b = sim.device->alloc(4, core::Category::kOther);
  core::Stream main = sim.device->open_stream(), side = sim.device->open_stream();
  core::Event event = sim.device->open_event();
  sim.device->fill(a.data(), 0, 4);
  Launch first(add_one, {floats(a, 1)}, {floats(a, 1)}), second(add_one, {floats(a, 1)}, {floats(b, 1)});
  sim.device->capture_begin(main);
  first(sim, main);
  core::Graph graph = sim.device->capture_end(main);
  auto step = [&] {
    first(sim, main);
    sim.device->record(event, main);
    sim.device->wait(event, side);
    second(sim, side);
    sim.device->copy_on_device(b.data(), a.data(), 4, side);
    sim.device->record(event, side);
    sim.device->wait(event, main);
    sim.device->replay(graph, main);
    sim.device->sync();
  };
  step();
  const int64_t before = g_allocations;
  for (int i = 0; i < 50; ++i) step();
  CHECK(g_allocations == before);
  CHECK(read(sim, a)[0] == 102);
}

}  // namespace gestalt::device_sim
