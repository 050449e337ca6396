#include "core/runtime/device.h"

#include <vector>

#include "core/runtime/arena.h"
#include "core/tensor/tensor.h"
#include "gestalt/abi/comm.h"
#include "plugins/device_cpu/cpu_device.h"
#include "tests/catch_compat.hpp"

namespace gestalt::core {

namespace {
struct Cpu {
  const gestalt_host* host = make_host("test.device_cpu");
  void* self = [this] {
    void* made = nullptr;
    check(host, device_cpu::cpu_component().create(host, nullptr, 0, &made));
    return made;
  }();
  Device device{host, &device_cpu::cpu_table(), self, std::shared_ptr<void>(self, device_cpu::cpu_component().destroy)};
};

gestalt_status* double_it(void* state, const gestalt_call* call) {
  if (state) return call->host->status_new(call->host->self, GESTALT_INVALID_ARGUMENT, str_of("[test] told to fail"));
  const gestalt_view& x = *call->in[0];
  for (int64_t i = 0; i < num_elements(x); ++i)
    static_cast<float*>(call->out[0]->data)[i] = 2 * static_cast<float*>(x.data)[i];
  return nullptr;
}
}  // namespace

TEST_CASE("a device describes itself and aligns its memory as it says") {
  Cpu cpu;
  CHECK(cpu.device.name() == "cpu");
  CHECK(cpu.device.kernels_of() == "cpu");
  CHECK(cpu.device.host_visible());
  CHECK_FALSE(cpu.device.can_capture());
  for (uint64_t bytes : {1ull, 65ull, 5ull << 20}) {
    Buffer buffer = cpu.device.alloc(bytes, Category::kOther);
    CHECK(reinterpret_cast<uintptr_t>(buffer.data()) % cpu.device.alignment() == 0);
    CHECK(buffer.bytes() == bytes);
  }
}

TEST_CASE("the ledger follows buffers to the byte, through moves") {
  Cpu cpu;
  Ledger& ledger = cpu.device.ledger();
  {
    Buffer a = cpu.device.alloc(1000, Category::kWeights);
    Buffer b = std::move(a);
    a = cpu.device.alloc(24, Category::kWeights);
    Buffer pinned = cpu.device.alloc_pinned(10);
    CHECK(ledger.line(Category::kWeights).current == 1024);
    CHECK(ledger.line(Category::kPinned).current == 10);
    CHECK(ledger.total().current == 1024);
  }
  CHECK(ledger.total().current == 0);
  CHECK(ledger.total().peak == 1024);
}

TEST_CASE("an allocation of zero bytes holds no memory and costs nothing") {
  Cpu cpu;
  Buffer none = cpu.device.alloc(0, Category::kBatch);
  CHECK(none.data() == nullptr);
  CHECK(cpu.device.ledger().total().peak == 0);
}

TEST_CASE("out of memory names the size and the purpose and shows the ledger") {
  Cpu cpu;
  Buffer weights = cpu.device.alloc(4096, Category::kWeights);
  try {
    cpu.device.alloc(uint64_t{1} << 62, Category::kActivations);
    FAIL("allocated");
  } catch (const Error& e) {
    CHECK(e.code() == GESTALT_OUT_OF_MEMORY);
    CHECK_THAT(e.message(), Catch::Contains("4611686018427387904 bytes of activations"));
    CHECK_THAT(e.message(), Catch::Contains("weights") && Catch::Contains("4096"));
  }
  CHECK(cpu.device.ledger().line(Category::kActivations).peak == 0);
}

TEST_CASE("copies and fills move bytes there and back") {
  Cpu cpu;
  std::vector<float> in{1, 2, 3, 4}, out(4);
  Buffer a = cpu.device.alloc(16, Category::kOther), b = cpu.device.alloc(16, Category::kOther);
  Stream stream = cpu.device.open_stream();
  cpu.device.copy_to_device(a.data(), in.data(), 16, stream);
  cpu.device.copy_on_device(b.data(), a.data(), 16, stream);
  cpu.device.copy_to_host(out.data(), b.data(), 16, stream);
  cpu.device.sync(stream);
  CHECK(out == in);
  cpu.device.fill(b.data(), 0, 16);
  cpu.device.copy_to_host(out.data(), b.data(), 16);
  CHECK(out == std::vector<float>(4));
}

TEST_CASE("events order streams without complaint on a device whose streams run inline") {
  Cpu cpu;
  Stream a = cpu.device.open_stream(), b = cpu.device.open_stream();
  Event event = cpu.device.open_event();
  cpu.device.record(event, a);
  cpu.device.wait(event, b);
  cpu.device.sync();
}

TEST_CASE("launch runs the kernel inline and hands back its status") {
  Cpu cpu;
  float x[2] = {1, 2}, y[2] = {};
  Tensor in(GESTALT_F32, {2}, x), out(GESTALT_F32, {2}, y);
  const gestalt_view* ins[] = {&in.view};
  const gestalt_view* outs[] = {&out.view};
  Stream stream = cpu.device.open_stream();
  gestalt_call call{sizeof call, ins, outs, 0, stream.get(), nullptr, cpu.host};
  CHECK(cpu.device.runs_inline());
  CHECK(cpu.device.launch(double_it, nullptr, &call, 1, 1, 0) == nullptr);
  CHECK(y[1] == 4);
  int fail_flag = 0;
  gestalt_status* status = cpu.device.launch(double_it, &fail_flag, &call, 1, 1, 0);
  REQUIRE(status);
  CHECK(take(status).message() == "[test] told to fail");
}

TEST_CASE("capture on a device without it is refused") {
  Cpu cpu;
  Stream stream = cpu.device.open_stream();
  CHECK_THROWS_WITH(cpu.device.capture_begin(stream), Catch::Contains("cannot capture"));
}

TEST_CASE("an arena hands out addresses inside its one allocation only") {
  Cpu cpu;
  Arena arena(cpu.device, 256, Category::kActivations);
  CHECK(cpu.device.ledger().line(Category::kActivations).current == 256);
  CHECK(static_cast<char*>(arena.at(192, 64)) - static_cast<char*>(arena.at(0)) == 192);
  CHECK_THROWS_WITH(arena.at(192, 65), Catch::Contains("offset 192 and 65 bytes"));
  CHECK_THROWS_AS(arena.at(257), Error);
}

TEST_CASE("the host copies between views of an open device for plugins that have no device") {
  Cpu cpu;
  const auto* copies =
      static_cast<const gestalt_copy_1*>(cpu.host->get_interface(cpu.host->self, str_of("gestalt.copy/1")));
  REQUIRE(copies);
  float x[2] = {1, 2}, y[2] = {};
  Tensor in(GESTALT_F32, {2}, x), out(GESTALT_F32, {2}, y), half(GESTALT_F32, {1}, y);
  CHECK(copies->copy(copies->self, &in.view, &out.view, nullptr) == nullptr);
  CHECK(y[1] == 2);
  CHECK_THAT(take(copies->copy(copies->self, &in.view, &half.view, nullptr)).message(),
             Catch::Contains("got f32[2] to f32[1]"));
  out.on(GESTALT_DEVICE_CUDA, 5);
  CHECK(take(copies->copy(copies->self, &in.view, &out.view, nullptr)).code() == GESTALT_UNAVAILABLE);
}

TEST_CASE("a device with a table of an older, shorter kind is refused") {
  gestalt_device_1 table = device_cpu::cpu_table();
  table.struct_size = 16;
  CHECK_THROWS_WITH(Device(make_host("test"), &table, nullptr), Catch::Contains("got 16 bytes"));
}

}  // namespace gestalt::core
