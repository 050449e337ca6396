// The simulated device: memory (sim_memory.h), streams (sim_stream.h) and capture, put together under the rules of a
// GPU.
#pragma once

#include "plugins/device_sim/sim_stream.h"

namespace gestalt::device_sim {

struct Options {
  int32_t ordinal = 0;
  bool strict = true;
  uint64_t memory_bytes = 0;
  StreamOptions streams;
};

class SimDevice {
 public:
  SimDevice(const gestalt_host* host, const Options& options);
  ~SimDevice();

  const gestalt_host* host() const { return host_; }
  void info(gestalt_device_info* out) const;

  void* alloc(uint64_t bytes, int32_t where);
  void free(void* data);
  Stream* stream_open() { return streams_.open(); }
  Event* event_open() { return new Event; }
  void close(int32_t kind, void* handle);

  void copy(void* dst, const void* src, uint64_t bytes, int32_t direction, Stream* stream);
  void fill(void* dst, uint8_t byte, uint64_t bytes, Stream* stream);
  void launch(const Work& kernel, Stream* stream) { submit(kernel, stream); }
  void record(Event* event, Stream* stream);
  void wait(Event* event, Stream* stream);
  // The first error of the work before, or NULL.
  gestalt_status* sync(Stream* stream);

  void capture_begin(Stream* stream);
  Graph* capture_end(Stream* stream);
  void replay(Graph* graph, Stream* stream);

 private:
  struct Capture {
    uint64_t number = 0;  // 0: none
    Stream* origin = nullptr;
    std::vector<Stream*> members;
    std::unique_ptr<Graph> graph;
    std::string broken;  // why capture_end will fail
  };

  void submit(const Work& work, Stream* stream);
  void refuse_in_capture(const char* what);
  [[noreturn]] void break_capture(const std::string& why);
  void join(Stream* stream);

  const gestalt_host* host_;
  const Options options_;
  Memory memory_;
  Streams streams_;
  std::recursive_mutex mutex_;  // capture state, and events against it
  Capture capture_;
  uint64_t captures_ = 0;
};

}  // namespace gestalt::device_sim
