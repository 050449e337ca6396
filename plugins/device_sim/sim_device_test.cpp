#include <cmath>
#include <cstring>
#include <thread>

#include "plugins/device_sim/sim_test_device.h"
#include "tests/catch_compat.hpp"

namespace gestalt::device_sim {

using core::Buffer;
using core::Category;
using core::Error;
using core::Event;
using core::Graph;
using core::Stream;
using core::Tensor;

TEST_CASE("the simulated device takes cpu kernels and gives every tensor its own pages") {
  SimUnderTest sim({{"ordinal", 3}});
  CHECK(sim.device->name() == "sim");
  CHECK(sim.device->kernels_of() == "cpu");
  CHECK(sim.device->type() == GESTALT_DEVICE_SIM);
  CHECK(sim.device->id() == 3);
  CHECK_FALSE(sim.device->host_visible());
  CHECK_FALSE(sim.device->runs_inline());
  CHECK(sim.device->alignment() >= 4096);
  Buffer buffer = sim.device->alloc(10, Category::kOther);
  CHECK(reinterpret_cast<uintptr_t>(buffer.data()) % sim.device->alignment() == 0);
}

TEST_CASE("fresh memory reads as NaN in every float type and is large as an integer") {
  SimUnderTest sim;
  Buffer buffer = sim.device->alloc(16, Category::kOther);
  unsigned char bytes[16];
  sim.device->copy_to_host(bytes, buffer.data(), 16);
  float f;
  double d;
  int32_t i;
  std::memcpy(&f, bytes, sizeof f);
  std::memcpy(&d, bytes, sizeof d);
  std::memcpy(&i, bytes, sizeof i);
  CHECK(std::isnan(f));
  CHECK(std::isnan(d));
  CHECK(i > 1'000'000'000);
}

TEST_CASE("copies, fills and kernels run in stream order whatever the delays") {
  for (int seed : {1, 2, 3}) {
    SimUnderTest sim({{"seed", seed}, {"max_delay_us", 300}});
    Buffer a = sim.device->alloc(4 * 5000, Category::kOther), b = sim.device->alloc(4 * 5000, Category::kOther);
    Stream stream = sim.device->open_stream();
    std::vector<float> in(5000, 41.0f), out(5000);
    Launch first(add_one, {floats(a, 5000)}, {floats(b, 5000)}), second(add_one, {floats(b, 5000)}, {floats(a, 5000)});
    sim.device->copy_to_device(a.data(), in.data(), a.bytes(), stream);
    first(sim, stream);
    second(sim, stream);
    sim.device->copy_on_device(b.data(), a.data(), a.bytes(), stream);
    sim.device->copy_to_host(out.data(), b.data(), b.bytes(), stream);
    sim.device->sync(stream);
    CHECK(out == std::vector<float>(5000, 43.0f));
  }
}

TEST_CASE("an event makes one stream wait for the work before it on another") {
  SimUnderTest sim({{"max_delay_us", 3000}});
  Buffer a = sim.device->alloc(4, Category::kOther), b = sim.device->alloc(4, Category::kOther);
  Stream producer = sim.device->open_stream(), consumer = sim.device->open_stream();
  Event ready = sim.device->open_event();
  Launch consume(add_one, {floats(a, 1)}, {floats(b, 1)});
  for (float value = 1; value <= 10; ++value) {
    Launch produce(write_value, {}, {floats(a, 1)}, &value);
    produce(sim, producer);
    sim.device->record(ready, producer);
    sim.device->wait(ready, consumer);
    consume(sim, consumer);
    sim.device->sync();
    CHECK(read(sim, b)[0] == value + 1);
  }
}

TEST_CASE("a kernel on another stream without an event reads what was there before") {
  int stale = 0;
  for (int seed = 0; seed < 20; ++seed) {
    SimUnderTest sim({{"seed", seed}, {"max_delay_us", 5000}});
    Buffer a = sim.device->alloc(4, Category::kOther), b = sim.device->alloc(4, Category::kOther);
    Stream producer = sim.device->open_stream(), consumer = sim.device->open_stream();
    float value = 7;
    Launch produce(write_value, {}, {floats(a, 1)}, &value), consume(add_one, {floats(a, 1)}, {floats(b, 1)});
    produce(sim, producer);
    consume(sim, consumer);
    sim.device->sync();
    const float got = read(sim, b)[0];
    stale += std::isnan(got);
    CHECK((std::isnan(got) || got == 8));
  }
  CHECK(stale >= 3);
}

TEST_CASE("waiting for an event that was never recorded does nothing, and recording again moves it") {
  SimUnderTest sim({{"max_delay_us", 0}});
  Stream a = sim.device->open_stream(), b = sim.device->open_stream();
  Event event = sim.device->open_event();
  sim.device->wait(event, b);
  sim.device->sync(b);
  Buffer buffer = sim.device->alloc(64, Category::kOther);
  sim.device->record(event, a);
  sim.device->fill(buffer.data(), 1, 64, a);
  sim.device->record(event, a);
  sim.device->wait(event, b);
  sim.device->fill(buffer.data(), 2, 64, b);
  sim.device->sync();
  unsigned char byte = 0;
  sim.device->copy_to_host(&byte, buffer.data(), 1);
  CHECK(byte == 2);
}

TEST_CASE("two streams may hold the same pages at once") {
  SimUnderTest sim({{"max_delay_us", 50}});
  Buffer shared = sim.device->alloc(4 * 3000, Category::kOther);
  sim.device->fill(shared.data(), 0, shared.bytes());
  std::vector<Buffer> results;
  std::vector<Stream> streams;
  std::vector<std::unique_ptr<Launch>> launches;
  for (int i = 0; i < 2; ++i) {
    results.push_back(sim.device->alloc(4 * 3000, Category::kOther));
    streams.push_back(sim.device->open_stream());
    launches.push_back(std::make_unique<Launch>(add_one, std::vector<Tensor>{floats(shared, 3000)},
                                                std::vector<Tensor>{floats(results.back(), 3000)}));
  }
  for (int round = 0; round < 100; ++round)
    for (size_t i = 0; i < 2; ++i) (*launches[i])(sim, streams[i]);
  sim.device->sync();
  for (Buffer& result : results) CHECK(read(sim, result) == std::vector<float>(3000, 1.0f));
}

TEST_CASE("the workspace of a kernel is open while it runs") {
  SimUnderTest sim;
  Buffer scratch = sim.device->alloc(100, Category::kWorkspace), out = sim.device->alloc(4, Category::kOther);
  Stream stream = sim.device->open_stream();
  auto run = [](void*, const gestalt_call* call) -> gestalt_status* {
    std::memset(call->workspace, 3, 100);
    static_cast<float*>(call->out[0]->data)[0] = static_cast<char*>(call->workspace)[99];
    return nullptr;
  };
  Launch kernel(run, {}, {floats(out, 1)});
  kernel.workspace = scratch.data();
  kernel.workspace_bytes = 100;
  kernel(sim, stream);
  sim.device->sync();
  CHECK(read(sim, out)[0] == 3);
}

TEST_CASE("empty tensors, absent inputs and host memory that is pinned are fine") {
  SimUnderTest sim;
  Buffer pinned = sim.device->alloc_pinned(8), out = sim.device->alloc(8, Category::kOther);
  static_cast<float*>(pinned.data())[1] = 5;  // the host may touch pinned memory
  Stream stream = sim.device->open_stream();
  Launch empty(write_value, {Tensor(GESTALT_F32, {0})}, {Tensor(GESTALT_F32, {0})});
  empty.in_views[0] = nullptr;
  empty(sim, stream);
  Launch add(add_one, {floats(pinned, 2)}, {floats(out, 2)});
  add(sim, stream);
  sim.device->sync();
  CHECK(read(sim, out)[1] == 6);
}

TEST_CASE("the first error of a kernel comes out of sync, later work is skipped, and the device recovers") {
  SimUnderTest sim;
  Buffer a = sim.device->alloc(4, Category::kOther);
  Stream stream = sim.device->open_stream();
  auto failing = [](void* state, const gestalt_call* call) -> gestalt_status* {
    return call->host->status_new(call->host->self, GESTALT_DATA_ERROR, str_of(static_cast<const char*>(state)));
  };
  char first[] = "first", second[] = "second";
  Launch bad(failing, {}, {}, first), worse(failing, {}, {}, second);
  float value = 9;
  Launch write(write_value, {}, {floats(a, 1)}, &value);
  bad(sim, stream);
  worse(sim, stream);
  write(sim, stream);
  CHECK_THROWS_WITH(sim.device->sync(stream), Catch::Contains("first"));
  CHECK(std::isnan(read(sim, a)[0]));
  write(sim, stream);
  sim.device->sync();
  CHECK(read(sim, a)[0] == 9);
}

TEST_CASE("work that holds freed memory is an error at sync") {
  SimUnderTest sim;
  Stream stream = sim.device->open_stream();
  Buffer kept = sim.device->alloc(4, Category::kOther), freed = sim.device->alloc(4, Category::kOther);
  Launch late(add_one, {floats(freed, 1)}, {floats(kept, 1)});
  freed = Buffer();
  late(sim, stream);
  CHECK_THROWS_WITH(sim.device->sync(), Catch::Contains("freed memory"));
}

TEST_CASE("free waits for the work that uses the memory") {
  SimUnderTest sim({{"max_delay_us", 20000}});
  Stream stream = sim.device->open_stream();
  Buffer out = sim.device->alloc(4, Category::kOther);
  {
    Buffer in = sim.device->alloc(4, Category::kOther);
    sim.device->fill(in.data(), 0, 4, stream);
    Launch add(add_one, {floats(in, 1)}, {floats(out, 1)});
    add(sim, stream);
    in = Buffer();
  }
  sim.device->sync();
  CHECK(read(sim, out)[0] == 1);
}

TEST_CASE("work that holds host memory, or leaves its allocation, is an error at sync") {
  SimUnderTest sim;
  Stream stream = sim.device->open_stream();
  Buffer out = sim.device->alloc(4, Category::kOther);
  float host_value = 1;
  Launch from_host(add_one, {Tensor(GESTALT_F32, {1}, &host_value)}, {floats(out, 1)});
  from_host(sim, stream);
  CHECK_THROWS_WITH(sim.device->sync(), Catch::Contains("not copied"));
  Launch too_long(add_one, {floats(out, 2)}, {floats(out, 2)});
  too_long(sim, stream);
  CHECK_THROWS_WITH(sim.device->sync(), Catch::Contains("bytes 0 to 8 of allocation"));
}

TEST_CASE("copies in the wrong direction are refused at once") {
  SimUnderTest sim;
  Buffer a = sim.device->alloc(4, Category::kOther), b = sim.device->alloc(4, Category::kOther);
  CHECK_THROWS_WITH(sim.device->copy_to_device(a.data(), b.data(), 4), Catch::Contains("source"));
  CHECK_THROWS_WITH(sim.device->copy_to_host(a.data(), b.data(), 4), Catch::Contains("destination"));
}

TEST_CASE("a write past the end inside the last page shows when the memory is freed") {
  SimUnderTest sim;
  const gestalt_device_1& table = sim_table();
  void* self = nullptr;
  core::check(sim.host, sim_component().create(sim.host, nullptr, 0, &self));
  void *data = nullptr, *stream = nullptr;
  core::check(sim.host, table.alloc(self, 10, GESTALT_ALLOC_DEVICE, &data));
  core::check(sim.host, table.stream_open(self, &stream));
  auto overrun = [](void*, const gestalt_call* call) -> gestalt_status* {
    static_cast<char*>(call->out[0]->data)[12] = 0;
    return nullptr;
  };
  Tensor out(GESTALT_U8, {10}, data);
  const gestalt_view* outs[] = {&out.view};
  gestalt_call call{sizeof call, nullptr, outs, 0, stream, nullptr, sim.host};
  core::check(sim.host, table.launch(self, stream, overrun, nullptr, &call, 0, 1, 0));
  core::check(sim.host, table.sync(self, nullptr));
  gestalt_status* status = table.free(self, data);
  REQUIRE(status);
  CHECK_THAT(core::take(status).message(), Catch::Contains("past its end, at byte 12"));
  CHECK_THAT(core::take(table.free(self, data)).message(), Catch::Contains("freed twice"));
  sim_component().destroy(self);
}

TEST_CASE("memory that was never freed is listed when the device is closed") {
  static std::vector<std::string> lines;
  lines.clear();
  gestalt_host host = *core::make_host("test.device_sim");
  host.log = [](void*, int32_t level, gestalt_str message) noexcept {
    if (level == GESTALT_LOG_WARN) lines.emplace_back(view_of(message));
  };
  void *self = nullptr, *data = nullptr;
  core::check(&host, sim_component().create(&host, nullptr, 0, &self));
  core::check(&host, sim_table().alloc(self, 77, GESTALT_ALLOC_DEVICE, &data));
  sim_component().destroy(self);
  CHECK(lines == std::vector<std::string>{"[sim] never freed: allocation 1 of 77 bytes"});
}

TEST_CASE("a device with a memory limit runs out of it with the numbers") {
  SimUnderTest sim({{"memory_bytes", 10000}});
  Buffer a = sim.device->alloc(6000, Category::kWeights);
  CHECK(sim.device->free_bytes() == 4000);
  CHECK_THROWS_WITH(sim.device->alloc(4001, Category::kActivations), Catch::Contains("4001 bytes") &&
                                                                         Catch::Contains("in use 6000 of 10000") &&
                                                                         Catch::Contains("weights"));
  a = Buffer();
  CHECK(sim.device->free_bytes() == 10000);
}

TEST_CASE("a queue longer than its ring makes the host wait, not fail") {
  SimUnderTest sim({{"max_delay_us", 0}});
  Stream stream = sim.device->open_stream();
  Buffer a = sim.device->alloc(4, Category::kOther);
  sim.device->fill(a.data(), 0, 4);
  Launch add(add_one, {floats(a, 1)}, {floats(a, 1)});
  for (int i = 0; i < 5000; ++i) add(sim, stream);
  sim.device->sync();
  CHECK(read(sim, a)[0] == 5000);
}

TEST_CASE("without strict the host may look, and work is still checked") {
  SimUnderTest sim({{"strict", false}});
  Buffer a = sim.device->alloc(4, Category::kOther);
  CHECK(std::isnan(*static_cast<float*>(a.data())));
  Stream stream = sim.device->open_stream();
  Launch too_long(add_one, {floats(a, 2)}, {floats(a, 2)});
  too_long(sim, stream);
  CHECK_THROWS_AS(sim.device->sync(), Error);
}

}  // namespace gestalt::device_sim
