#include "plugins/device_cpu/cpu_device.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

namespace gestalt::device_cpu {

namespace {

constexpr uint64_t kAlignment = 64;
// From here on memory starts at a huge page and asks for more of them: far fewer TLB misses in a large arena.
constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kHugeFrom = 2 * kHugePage;
// No process has more addresses; sanitizers end the process instead of refusing such a size.
constexpr uint64_t kMostBytes = uint64_t{1} << 47;

struct CpuDevice {
  const gestalt_host* host;
};

CpuDevice& device(void* self) { return *static_cast<CpuDevice*>(self); }

constexpr gestalt_str text(std::string_view s) { return {s.data(), s.size()}; }

// Streams and events have no state; their handles only need to differ from NULL.
char g_token;

gestalt_status* info(void*, gestalt_device_info* out) noexcept {
  gestalt_device_info filled{};
  filled.device_type = GESTALT_DEVICE_CPU;
  filled.name = text("cpu");
  filled.kernels_of = text("cpu");
  filled.alignment = kAlignment;
  filled.host_visible = 1;
  filled.struct_size = out->struct_size < sizeof filled ? out->struct_size : sizeof filled;
  std::memcpy(out, &filled, filled.struct_size);
  return nullptr;
}

gestalt_status* alloc(void* self, uint64_t bytes, int32_t, void** out) noexcept {
  *out = nullptr;
  if (bytes == 0) return nullptr;
  const uint64_t alignment = bytes >= kHugeFrom ? kHugePage : kAlignment;
  const uint64_t rounded = (bytes + alignment - 1) / alignment * alignment;
  if (bytes <= kMostBytes) *out = std::aligned_alloc(alignment, rounded);
  if (!*out) {
    char message[96];
    const int size = std::snprintf(message, sizeof message, "[alloc] the system has no %llu bytes",
                                   static_cast<unsigned long long>(bytes));
    const gestalt_host* host = device(self).host;
    return host->status_new(host->self, GESTALT_OUT_OF_MEMORY, {message, static_cast<uint64_t>(size)});
  }
  if (alignment == kHugePage) madvise(*out, rounded, MADV_HUGEPAGE);  // a hint: failing is fine
  return nullptr;
}

gestalt_status* free_memory(void*, void* data) noexcept {
  std::free(data);
  return nullptr;
}

gestalt_status* open(void*, void** handle) noexcept {
  *handle = &g_token;
  return nullptr;
}

gestalt_status* close(void*, int32_t, void*) noexcept { return nullptr; }

gestalt_status* copy(void*, void* dst, const void* src, uint64_t bytes, int32_t, void*) noexcept {
  if (bytes) std::memmove(dst, src, bytes);
  return nullptr;
}

gestalt_status* fill(void*, void* dst, uint8_t byte, uint64_t bytes, void*) noexcept {
  if (bytes) std::memset(dst, byte, bytes);
  return nullptr;
}

gestalt_status* order(void*, void*, void*) noexcept { return nullptr; }

gestalt_status* sync(void*, void*) noexcept { return nullptr; }

gestalt_status* create(const gestalt_host* host, const gestalt_attr*, uint64_t, void** self) noexcept {
  *self = new (std::nothrow) CpuDevice{host};
  if (*self) return nullptr;
  return host->status_new(host->self, GESTALT_OUT_OF_MEMORY, text("[create] no memory for the device object"));
}

void destroy(void* self) noexcept { delete static_cast<CpuDevice*>(self); }

constexpr gestalt_config_key kKeys[] = {
    {text("ordinal"), text("i64"), text("0"), text("0"), text("0"), {}, {}, text("which CPU device; there is one"), 0}};

}  // namespace

constexpr gestalt_device_1 kCpuTable = {sizeof(gestalt_device_1), info, alloc, free_memory, open, open, close, copy, fill,
                                        order, order, sync, nullptr, nullptr, nullptr, nullptr};

constexpr gestalt_component kCpuComponent = {sizeof(gestalt_component), text("device/1"), text("cpu"), kKeys, 1, create,
                                             destroy, &kCpuTable};

}  // namespace gestalt::device_cpu
