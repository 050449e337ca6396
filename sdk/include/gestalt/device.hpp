// Component kind "device/1": memory, copies, streams, events, capture. Handles are opaque to the host.
#pragma once

#include "gestalt/abi/device.h"
#include "gestalt/component.hpp"

namespace gestalt {

// Each function is explained in gestalt/abi/device.h. launch and the three of capture are optional: the host sees them
// only if the class overrides them.
class Device : public detail::ComponentOf<Device> {
 public:
  using Run = gestalt_status* (*)(void* state, const gestalt_call* call);

  virtual void info(gestalt_device_info& out) = 0;  // struct_size is set
  virtual void* alloc(uint64_t bytes, int32_t where) = 0;
  virtual void free(void* data) = 0;
  virtual void* stream_open() = 0;
  virtual void* event_open() = 0;
  virtual void close(int32_t kind, void* handle) = 0;
  virtual void copy(void* dst, const void* src, uint64_t bytes, int32_t direction, void* stream) = 0;
  virtual void fill(void* dst, uint8_t byte, uint64_t bytes, void* stream) = 0;
  virtual void record(void* event, void* stream) = 0;
  virtual void wait(void* event, void* stream) = 0;
  virtual void sync(void* stream) = 0;
  virtual void launch(void* stream, Run run, void* state, const gestalt_call* call, uint64_t num_in, uint64_t num_out,
                      uint64_t workspace_size);
  virtual void capture_begin(void* stream);
  virtual void* capture_end(void* stream);
  virtual void replay(void* graph, void* stream);

  static constexpr std::string_view kKind = "device/1";
  template <class C>
  static constexpr const void* table();
};

inline void Device::launch(void*, Run, void*, const gestalt_call*, uint64_t, uint64_t, uint64_t) {
  throw Error(GESTALT_INTERNAL, "[device] launch is not of this device");
}
inline void Device::capture_begin(void*) { throw Error(GESTALT_INTERNAL, "[device] capture is not of this device"); }
inline void* Device::capture_end(void*) { throw Error(GESTALT_INTERNAL, "[device] capture is not of this device"); }
inline void Device::replay(void*, void*) { throw Error(GESTALT_INTERNAL, "[device] capture is not of this device"); }

namespace detail {

inline constexpr gestalt_device_1 device_functions = {
    sizeof(gestalt_device_1),
    [](void* self, gestalt_device_info* out) noexcept { return with<Device>(self, [&](Device& d) { d.info(*out); }); },
    [](void* self, uint64_t bytes, int32_t where, void** out) noexcept {
      return with<Device>(self, [&](Device& d) { *out = d.alloc(bytes, where); });
    },
    [](void* self, void* data) noexcept { return with<Device>(self, [&](Device& d) { d.free(data); }); },
    [](void* self, void** stream) noexcept {
      return with<Device>(self, [&](Device& d) { *stream = d.stream_open(); });
    },
    [](void* self, void** event) noexcept { return with<Device>(self, [&](Device& d) { *event = d.event_open(); }); },
    [](void* self, int32_t kind, void* handle) noexcept {
      return with<Device>(self, [&](Device& d) { d.close(kind, handle); });
    },
    [](void* self, void* dst, const void* src, uint64_t bytes, int32_t direction, void* stream) noexcept {
      return with<Device>(self, [&](Device& d) { d.copy(dst, src, bytes, direction, stream); });
    },
    [](void* self, void* dst, uint8_t byte, uint64_t bytes, void* stream) noexcept {
      return with<Device>(self, [&](Device& d) { d.fill(dst, byte, bytes, stream); });
    },
    [](void* self, void* event, void* stream) noexcept {
      return with<Device>(self, [&](Device& d) { d.record(event, stream); });
    },
    [](void* self, void* event, void* stream) noexcept {
      return with<Device>(self, [&](Device& d) { d.wait(event, stream); });
    },
    [](void* self, void* stream) noexcept { return with<Device>(self, [&](Device& d) { d.sync(stream); }); },
    [](void* self, void* stream, Device::Run run, void* state, const gestalt_call* call, uint64_t num_in,
       uint64_t num_out, uint64_t workspace_size) noexcept {
      return with<Device>(self,
                          [&](Device& d) { d.launch(stream, run, state, call, num_in, num_out, workspace_size); });
    },
    [](void* self, void* stream) noexcept { return with<Device>(self, [&](Device& d) { d.capture_begin(stream); }); },
    [](void* self, void* stream, void** graph) noexcept {
      return with<Device>(self, [&](Device& d) { *graph = d.capture_end(stream); });
    },
    [](void* self, void* graph, void* stream) noexcept {
      return with<Device>(self, [&](Device& d) { d.replay(graph, stream); });
    }};

// A member that a class overrides has the class in its type.
template <class C>
constexpr gestalt_device_1 device_table() {
  gestalt_device_1 t = device_functions;
  if constexpr (std::is_same_v<decltype(&C::launch), decltype(&Device::launch)>) t.launch = nullptr;
  if constexpr (std::is_same_v<decltype(&C::replay), decltype(&Device::replay)>) {
    t.capture_begin = nullptr;
    t.capture_end = nullptr;
    t.replay = nullptr;
  }
  return t;
}

template <class C>
inline constexpr gestalt_device_1 device_table_of = device_table<C>();

}  // namespace detail

template <class C>
constexpr const void* Device::table() {
  return &detail::device_table_of<C>;
}

}  // namespace gestalt
