#include "plugins/device_cpu/cpu_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "gestalt/device.hpp"

namespace gestalt::device_cpu {

namespace {

constexpr uint64_t kAlignment = 64;
// From here on memory starts at a huge page and asks for more of them: far fewer TLB misses in a large arena.
constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kHugeFrom = 2 * kHugePage;
// No process has more addresses; sanitizers end the process instead of refusing such a size.
constexpr uint64_t kMostBytes = uint64_t{1} << 47;

class Cpu : public Device {
 public:
  static constexpr std::string_view name = "cpu";
  static constexpr ConfigKey keys[] = {{.name = "ordinal",
                                        .type = "i64",
                                        .default_value = "0",
                                        .min = "0",
                                        .max = "0",
                                        .doc = "which CPU device; there is one"}};

  Cpu(Host, Attrs) {}

  void info(gestalt_device_info& out) override {
    gestalt_device_info filled{};
    filled.device_type = GESTALT_DEVICE_CPU;
    filled.name = str_of("cpu");
    filled.kernels_of = str_of("cpu");
    filled.alignment = kAlignment;
    filled.host_visible = 1;
    filled.struct_size = std::min<uint64_t>(out.struct_size, sizeof filled);
    std::memcpy(&out, &filled, filled.struct_size);
  }

  void* alloc(uint64_t bytes, int32_t) override {
    if (bytes == 0) return nullptr;
    const uint64_t alignment = bytes >= kHugeFrom ? kHugePage : kAlignment;
    const uint64_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* data = bytes <= kMostBytes ? std::aligned_alloc(alignment, rounded) : nullptr;
    if (!data) throw Error(GESTALT_OUT_OF_MEMORY, "[alloc] the system has no " + std::to_string(bytes) + " bytes");
    if (alignment == kHugePage) madvise(data, rounded, MADV_HUGEPAGE);  // a hint: failing is fine
    return data;
  }
  void free(void* data) override { std::free(data); }

  // Streams and events have no state; a handle only needs to differ from NULL.
  void* stream_open() override { return this; }
  void* event_open() override { return this; }
  void close(int32_t, void*) override {}

  void copy(void* dst, const void* src, uint64_t bytes, int32_t, void*) override {
    if (bytes) std::memmove(dst, src, bytes);
  }
  void fill(void* dst, uint8_t byte, uint64_t bytes, void*) override {
    if (bytes) std::memset(dst, byte, bytes);
  }
  void record(void*, void*) override {}
  void wait(void*, void*) override {}
  void sync(void*) override {}
};

}  // namespace

GESTALT_COMPONENT(Cpu)

const gestalt_component& cpu_component() { return detail::component_entry<Cpu>; }
const gestalt_device_1& cpu_table() { return *static_cast<const gestalt_device_1*>(Cpu::table<Cpu>()); }

}  // namespace gestalt::device_cpu
