#include "plugins/device_sim/sim_component.h"

#include "gestalt/device.hpp"
#include "plugins/device_sim/sim_device.h"

namespace gestalt::device_sim {

namespace {

Options options_of(const Attrs& config) {
  Options options;
  options.ordinal = static_cast<int32_t>(config.i64("ordinal", 0));
  options.strict = config.boolean("strict", true);
  options.memory_bytes = static_cast<uint64_t>(config.i64("memory_bytes", 0));
  options.streams.seed = static_cast<uint64_t>(config.i64("seed", 0));
  options.streams.max_delay_us = static_cast<uint64_t>(config.i64("max_delay_us", 20));
  return options;
}

Stream* stream_of(void* handle) { return static_cast<Stream*>(handle); }

class Sim : public Device {
 public:
  static constexpr std::string_view name = "sim";
  static constexpr ConfigKey keys[] = {
      {.name = "ordinal",
       .type = "i64",
       .default_value = "0",
       .min = "0",
       .max = "63",
       .doc = "number of the device, for several in one process"},
      {.name = "strict", .type = "bool", .default_value = "true", .doc = "close pages while no work holds them"},
      {.name = "memory_bytes",
       .type = "i64",
       .default_value = "0",
       .min = "0",
       .doc = "memory of the device in bytes; 0: no limit"},
      {.name = "seed",
       .type = "i64",
       .default_value = "0",
       .min = "0",
       .doc = "seed of the delays and of the order in which a graph replays"},
      {.name = "max_delay_us",
       .type = "i64",
       .default_value = "20",
       .min = "0",
       .max = "1000000",
       .doc = "longest delay before a piece of work, in microseconds"}};

  Sim(Host host, Attrs config) : device_(host.raw(), options_of(config)) {}

  void info(gestalt_device_info& out) override { device_.info(&out); }
  void* alloc(uint64_t bytes, int32_t where) override { return device_.alloc(bytes, where); }
  void free(void* data) override { device_.free(data); }
  void* stream_open() override { return device_.stream_open(); }
  void* event_open() override { return device_.event_open(); }
  void close(int32_t kind, void* handle) override { device_.close(kind, handle); }
  void copy(void* dst, const void* src, uint64_t bytes, int32_t direction, void* stream) override {
    device_.copy(dst, src, bytes, direction, stream_of(stream));
  }
  void fill(void* dst, uint8_t byte, uint64_t bytes, void* stream) override {
    device_.fill(dst, byte, bytes, stream_of(stream));
  }
  void record(void* event, void* stream) override { device_.record(static_cast<Event*>(event), stream_of(stream)); }
  void wait(void* event, void* stream) override { device_.wait(static_cast<Event*>(event), stream_of(stream)); }
  void sync(void* stream) override { check(device_.host(), device_.sync(stream_of(stream))); }
  void launch(void* stream, Run run, void* state, const gestalt_call* call, uint64_t num_in, uint64_t num_out,
              uint64_t workspace_size) override {
    Work work;
    work.kind = Work::Kind::kKernel;
    work.run = run;
    work.state = state;
    work.call = call;
    work.num_in = num_in;
    work.num_out = num_out;
    work.workspace_size = workspace_size;
    device_.launch(work, stream_of(stream));
  }
  void capture_begin(void* stream) override { device_.capture_begin(stream_of(stream)); }
  void* capture_end(void* stream) override { return device_.capture_end(stream_of(stream)); }
  void replay(void* graph, void* stream) override { device_.replay(static_cast<Graph*>(graph), stream_of(stream)); }

 private:
  SimDevice device_;
};

}  // namespace

GESTALT_COMPONENT(Sim)

const gestalt_component& sim_component() { return detail::component_entry<Sim>; }
const gestalt_device_1& sim_table() { return *static_cast<const gestalt_device_1*>(Sim::table<Sim>()); }

}  // namespace gestalt::device_sim
