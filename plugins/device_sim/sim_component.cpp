#include "plugins/device_sim/sim_component.h"

#include "gestalt/attrs.hpp"
#include "plugins/device_sim/sim_device.h"

namespace gestalt::device_sim {

namespace {

SimDevice& device(void* self) { return *static_cast<SimDevice*>(self); }
Stream* stream_of(void* handle) { return static_cast<Stream*>(handle); }

// Calls f(device) and turns what it throws into a status.
template <class F>
gestalt_status* with(void* self, F&& f) noexcept {
  return guard(device(self).host(), [&] { f(device(self)); });
}

gestalt_status* info(void* self, gestalt_device_info* out) noexcept {
  return with(self, [&](SimDevice& d) { d.info(out); });
}

gestalt_status* alloc(void* self, uint64_t bytes, int32_t where, void** out) noexcept {
  return with(self, [&](SimDevice& d) { *out = d.alloc(bytes, where); });
}

gestalt_status* free_memory(void* self, void* data) noexcept {
  return with(self, [&](SimDevice& d) { d.free(data); });
}

gestalt_status* stream_open(void* self, void** out) noexcept {
  return with(self, [&](SimDevice& d) { *out = d.stream_open(); });
}

gestalt_status* event_open(void* self, void** out) noexcept {
  return with(self, [&](SimDevice& d) { *out = d.event_open(); });
}

gestalt_status* close(void* self, int32_t kind, void* handle) noexcept {
  return with(self, [&](SimDevice& d) { d.close(kind, handle); });
}

gestalt_status* copy(void* self, void* dst, const void* src, uint64_t bytes, int32_t direction, void* stream) noexcept {
  return with(self, [&](SimDevice& d) { d.copy(dst, src, bytes, direction, stream_of(stream)); });
}

gestalt_status* fill(void* self, void* dst, uint8_t byte, uint64_t bytes, void* stream) noexcept {
  return with(self, [&](SimDevice& d) { d.fill(dst, byte, bytes, stream_of(stream)); });
}

gestalt_status* record(void* self, void* event, void* stream) noexcept {
  return with(self, [&](SimDevice& d) { d.record(static_cast<Event*>(event), stream_of(stream)); });
}

gestalt_status* wait(void* self, void* event, void* stream) noexcept {
  return with(self, [&](SimDevice& d) { d.wait(static_cast<Event*>(event), stream_of(stream)); });
}

gestalt_status* sync(void* self, void* stream) noexcept {
  gestalt_status* error = nullptr;
  gestalt_status* refused = with(self, [&](SimDevice& d) { error = d.sync(stream_of(stream)); });
  return refused ? refused : error;
}

gestalt_status* launch(void* self, void* stream, gestalt_status* (*run)(void*, const gestalt_call*), void* state,
                       const gestalt_call* call, uint64_t num_in, uint64_t num_out, uint64_t workspace_size) noexcept {
  return with(self, [&](SimDevice& d) {
    Work work;
    work.kind = Work::Kind::kKernel;
    work.run = run;
    work.state = state;
    work.call = call;
    work.num_in = num_in;
    work.num_out = num_out;
    work.workspace_size = workspace_size;
    d.launch(work, stream_of(stream));
  });
}

gestalt_status* capture_begin(void* self, void* stream) noexcept {
  return with(self, [&](SimDevice& d) { d.capture_begin(stream_of(stream)); });
}

gestalt_status* capture_end(void* self, void* stream, void** graph) noexcept {
  *graph = nullptr;
  return with(self, [&](SimDevice& d) { *graph = d.capture_end(stream_of(stream)); });
}

gestalt_status* replay(void* self, void* graph, void* stream) noexcept {
  return with(self, [&](SimDevice& d) { d.replay(static_cast<Graph*>(graph), stream_of(stream)); });
}

gestalt_status* create(const gestalt_host* host, const gestalt_attr* config, uint64_t num, void** self) noexcept {
  return guard(host, [&] {
    const Attrs keys(config, num);
    Options options;
    options.ordinal = static_cast<int32_t>(keys.i64("ordinal", 0));
    options.strict = keys.boolean("strict", true);
    options.memory_bytes = static_cast<uint64_t>(keys.i64("memory_bytes", 0));
    options.streams.seed = static_cast<uint64_t>(keys.i64("seed", 0));
    options.streams.max_delay_us = static_cast<uint64_t>(keys.i64("max_delay_us", 20));
    *self = new SimDevice(host, options);
  });
}

void destroy(void* self) noexcept { delete &device(self); }

constexpr gestalt_config_key key(std::string_view name, std::string_view type, std::string_view otherwise,
                                 std::string_view min, std::string_view max, std::string_view doc) {
  return {str_of(name), str_of(type), str_of(otherwise), str_of(min), str_of(max), {}, {}, str_of(doc), 0};
}

constexpr gestalt_config_key kKeys[] = {
    key("ordinal", "i64", "0", "0", "63", "number of the device, for several in one process"),
    key("strict", "bool", "true", "", "", "close pages while no work holds them"),
    key("memory_bytes", "i64", "0", "0", "", "memory of the device in bytes; 0: no limit"),
    key("seed", "i64", "0", "0", "", "seed of the delays and of the order in which a graph replays"),
    key("max_delay_us", "i64", "20", "0", "1000000", "longest delay before a piece of work, in microseconds"),
};

}  // namespace

constexpr gestalt_device_1 kSimTable = {sizeof(gestalt_device_1),
                                        info,
                                        alloc,
                                        free_memory,
                                        stream_open,
                                        event_open,
                                        close,
                                        copy,
                                        fill,
                                        record,
                                        wait,
                                        sync,
                                        launch,
                                        capture_begin,
                                        capture_end,
                                        replay};

constexpr gestalt_component kSimComponent = {sizeof(gestalt_component),
                                             str_of("device/1"),
                                             str_of("sim"),
                                             kKeys,
                                             sizeof kKeys / sizeof kKeys[0],
                                             create,
                                             destroy,
                                             &kSimTable};

}  // namespace gestalt::device_sim
