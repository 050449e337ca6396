#include "plugins/device_sim/sim_device.h"

#include <algorithm>
#include <cstring>

#include "gestalt/host.hpp"
#include "plugins/device_sim/fault_report.h"

namespace gestalt::device_sim {

SimDevice::SimDevice(const gestalt_host* host, const Options& options)
    : host_(host),
      options_(options),
      memory_(options.strict, options.memory_bytes),
      streams_(memory_, host, options.streams) {
  if (options.strict) start_fault_report(&memory_);
}

SimDevice::~SimDevice() {
  streams_.wait_all_done();
  if (options_.strict) stop_fault_report(&memory_);
  for (const std::string& line : memory_.leaks()) Host(host_).warn("[sim] never freed: " + line);
}

void SimDevice::info(gestalt_device_info* out) const {
  gestalt_device_info filled{};
  filled.device_type = GESTALT_DEVICE_SIM;
  filled.device_id = options_.ordinal;
  filled.name = str_of("sim");
  filled.kernels_of = str_of("cpu");
  filled.alignment = memory_.page_size();
  filled.total_bytes = options_.memory_bytes;
  filled.free_bytes = memory_.free_bytes();
  filled.struct_size = std::min<uint64_t>(out->struct_size, sizeof filled);
  std::memcpy(out, &filled, filled.struct_size);
}

void* SimDevice::alloc(uint64_t bytes, int32_t where) {
  refuse_in_capture("alloc");
  return memory_.alloc(bytes, where == GESTALT_ALLOC_PINNED);
}

void SimDevice::free(void* data) {
  refuse_in_capture("free");
  streams_.wait_all_done();
  memory_.free(data);
}

void SimDevice::close(int32_t kind, void* handle) {
  if (kind == GESTALT_HANDLE_EVENT) {
    delete static_cast<Event*>(handle);
  } else if (kind == GESTALT_HANDLE_GRAPH) {
    auto* graph = static_cast<Graph*>(handle);
    streams_.wait_graph_done(*graph);
    delete graph;
  } else if (kind == GESTALT_HANDLE_STREAM) {
    auto* stream = static_cast<Stream*>(handle);
    std::lock_guard lock(mutex_);
    if (stream->capture) break_capture("a stream was closed while it was recorded");
    streams_.close(stream);
  } else {
    throw Error(GESTALT_INVALID_ARGUMENT, "[close] unknown kind of handle, got " + std::to_string(kind));
  }
}

void SimDevice::submit(const Work& work, Stream* stream) {
  if (!stream) throw Error(GESTALT_INVALID_ARGUMENT, "[stream] no stream given, got NULL");
  std::unique_lock lock(mutex_);
  if (stream->capture) {
    const uint32_t node = capture_.graph->add(work, stream->tails);
    stream->tails.assign(1, node);
    return;
  }
  lock.unlock();
  streams_.enqueue(stream, work);
}

void SimDevice::copy(void* dst, const void* src, uint64_t bytes, int32_t direction, Stream* stream) {
  if (bytes == 0) return;
  if (direction < GESTALT_COPY_TO_DEVICE || direction > GESTALT_COPY_ON_DEVICE)
    throw Error(GESTALT_INVALID_ARGUMENT, "[copy] unknown direction, got " + std::to_string(direction));
  if (direction == GESTALT_COPY_TO_DEVICE && memory_.is_device(range_of(src, bytes)))
    throw Error(GESTALT_INVALID_ARGUMENT, "[copy] the source of a copy to the device is device memory");
  if (direction == GESTALT_COPY_TO_HOST && memory_.is_device(range_of(dst, bytes)))
    throw Error(GESTALT_INVALID_ARGUMENT, "[copy] the destination of a copy to the host is device memory");
  Work work;
  work.kind = Work::Kind::kCopy;
  work.dst = dst;
  work.src = src;
  work.bytes = bytes;
  work.direction = direction;
  submit(work, stream);
}

void SimDevice::fill(void* dst, uint8_t byte, uint64_t bytes, Stream* stream) {
  if (bytes == 0) return;
  Work work;
  work.kind = Work::Kind::kFill;
  work.dst = dst;
  work.byte = byte;
  work.bytes = bytes;
  submit(work, stream);
}

void SimDevice::record(Event* event, Stream* stream) {
  std::lock_guard lock(mutex_);
  event->stream = stream;
  event->capture = stream->capture;
  if (stream->capture)
    event->tails = stream->tails;
  else
    event->ticket = streams_.enqueued(stream);
}

void SimDevice::wait(Event* event, Stream* stream) {
  std::unique_lock lock(mutex_);
  if (!event->stream) return;  // never recorded: nothing to wait for
  if (event->capture) {
    if (event->capture != capture_.number)
      throw Error(GESTALT_INVALID_ARGUMENT, "[wait] the event was recorded in a capture that has ended");
    if (!stream->capture) join(stream);
    for (uint32_t tail : event->tails)
      if (std::find(stream->tails.begin(), stream->tails.end(), tail) == stream->tails.end())
        stream->tails.push_back(tail);
    return;
  }
  if (stream->capture) break_capture("recorded work waits for an event from outside the capture");
  Work work;
  work.kind = Work::Kind::kWait;
  work.stream = event->stream;
  work.ticket = event->ticket;
  lock.unlock();
  if (work.stream != stream) streams_.enqueue(stream, work);
}

gestalt_status* SimDevice::sync(Stream* stream) {
  {
    std::lock_guard lock(mutex_);
    if (stream ? stream->capture != 0 : capture_.number != 0)
      break_capture("the host waited for work that is recorded");
  }
  if (stream)
    streams_.wait_done(stream);
  else
    streams_.wait_all_done();
  return streams_.take_error();
}

void SimDevice::refuse_in_capture(const char* what) {
  std::lock_guard lock(mutex_);
  if (capture_.number) break_capture(std::string(what) + " was called while work is recorded");
}

void SimDevice::break_capture(const std::string& why) {
  if (capture_.broken.empty()) capture_.broken = why;
  throw Error(GESTALT_INVALID_ARGUMENT, "[capture] " + why);
}

void SimDevice::join(Stream* stream) {
  stream->capture = capture_.number;
  stream->tails.clear();
  capture_.members.push_back(stream);
}

void SimDevice::capture_begin(Stream* stream) {
  std::lock_guard lock(mutex_);
  if (capture_.number) break_capture("a second capture was begun inside the first");
  capture_ = Capture{};
  capture_.number = ++captures_;
  capture_.origin = stream;
  capture_.graph = std::make_unique<Graph>();
  join(stream);
}

Graph* SimDevice::capture_end(Stream* stream) {
  std::lock_guard lock(mutex_);
  if (capture_.number == 0) throw Error(GESTALT_INVALID_ARGUMENT, "[capture_end] no capture was begun");
  if (capture_.origin != stream) break_capture("the capture was ended on another stream than it was begun on");
  Capture ended = std::move(capture_);
  capture_ = Capture{};
  const std::vector<uint32_t> ends = stream->tails;
  for (Stream* member : ended.members) member->capture = 0;
  if (!ended.broken.empty()) throw Error(GESTALT_INVALID_ARGUMENT, "[capture_end] " + ended.broken);
  if (!ended.graph->all_joined(ends))
    throw Error(
        GESTALT_INVALID_ARGUMENT,
        "[capture_end] a stream that joined the capture was not waited for; record an event on it and wait for it "
        "on the stream of the capture");
  ended.graph->finish();
  return ended.graph.release();
}

void SimDevice::replay(Graph* graph, Stream* stream) {
  Work work;
  work.kind = Work::Kind::kGraph;
  work.graph = graph;
  std::unique_lock lock(mutex_);
  if (stream->capture) break_capture("a graph was replayed inside a capture");
  lock.unlock();
  streams_.enqueue(stream, work);
}

}  // namespace gestalt::device_sim
