// Streams are threads with a queue each; events are places in a queue. All state here is under one lock of the device.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "plugins/device_sim/sim_work.h"

namespace gestalt::device_sim {

struct Stream {
  static constexpr uint64_t kQueue = 1024;  // a full queue makes the host wait, as on a real device

  explicit Stream(uint32_t seed) : random(seed), queue(kQueue) {}

  std::minstd_rand random;  // the stream's thread only
  std::vector<Work> queue;  // ring: work `i` is at i % kQueue
  uint64_t enqueued = 0, done = 0;
  bool closed = false;
  std::thread thread;
  // While recording: what the stream's next node waits for.
  uint64_t capture = 0;  // number of the capture, 0: none
  std::vector<uint32_t> tails;
};

// record() only notes how far the stream's queue reaches at that moment; wait() makes the other stream wait for that
// many.
struct Event {
  Stream* stream = nullptr;  // NULL: never recorded
  uint64_t ticket = 0;
  uint64_t capture = 0;
  std::vector<uint32_t> tails;
};

struct StreamOptions {
  uint64_t seed = 0, max_delay_us = 0;
};

// Runs queues. The first error stops all later work of every stream until a sync has reported it, so that nothing runs
// on what failed work left behind.
class Streams {
 public:
  Streams(Memory& memory, const gestalt_host* host, StreamOptions options)
      : memory_(memory), host_(host), options_(options) {}
  ~Streams();

  Stream* open();
  void close(Stream* stream);
  // No allocation.
  void enqueue(Stream* stream, const Work& work);
  uint64_t enqueued(Stream* stream);
  void wait_done(Stream* stream);
  void wait_all_done();
  // The pending error, now the caller's; NULL if none.
  gestalt_status* take_error();
  void wait_graph_done(const Graph& graph);

 private:
  void run(Stream& stream);
  void delay(Stream& stream) const;
  bool all_done() const;

  Memory& memory_;
  const gestalt_host* host_;
  const StreamOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Stream>> streams_;  // closed ones stay: events may still name them
  gestalt_status* error_ = nullptr;
};

}  // namespace gestalt::device_sim
