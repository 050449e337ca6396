#include "plugins/device_sim/sim_stream.h"

#include <algorithm>
#include <chrono>

namespace gestalt::device_sim {

Streams::~Streams() {
  for (auto& stream : streams_)
    if (!stream->closed) close(stream.get());
  if (error_) host_->status_free(host_->self, error_);
}

Stream* Streams::open() {
  std::lock_guard lock(mutex_);
  const uint64_t seed = (options_.seed + 1) * 0x9e3779b97f4a7c15u + streams_.size() * 0xbf58476d1ce4e5b9u;
  Stream* stream = streams_.emplace_back(std::make_unique<Stream>(static_cast<uint32_t>(seed >> 32) | 1u)).get();
  stream->thread = std::thread([this, stream] { run(*stream); });
  return stream;
}

void Streams::close(Stream* stream) {
  enqueue(stream, Work{});
  stream->thread.join();
  std::lock_guard lock(mutex_);
  stream->closed = true;
  stream->queue = {};
}

void Streams::enqueue(Stream* stream, const Work& work) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [stream] { return stream->enqueued - stream->done < Stream::kQueue; });
  if (work.graph) ++work.graph->in_flight;
  stream->queue[stream->enqueued % Stream::kQueue] = work;
  ++stream->enqueued;
  changed_.notify_all();
}

uint64_t Streams::enqueued(Stream* stream) {
  std::lock_guard lock(mutex_);
  return stream->enqueued;
}

void Streams::delay(Stream& stream) const {
  if (options_.max_delay_us == 0) return;
  std::this_thread::sleep_for(std::chrono::microseconds(stream.random() % (options_.max_delay_us + 1)));
}

void Streams::run(Stream& stream) {
  std::unique_lock lock(mutex_);
  for (bool stop = false; !stop;) {
    changed_.wait(lock, [&stream] { return stream.done < stream.enqueued; });
    const Work work = stream.queue[stream.done % Stream::kQueue];
    stop = work.kind == Work::Kind::kStop;
    if (work.kind == Work::Kind::kWait) {
      changed_.wait(lock, [&work] { return work.stream->done >= work.ticket; });
    } else if (!stop) {
      const bool run = !error_;
      lock.unlock();
      gestalt_status* status = nullptr;
      if (run) {
        delay(stream);
        status = execute(work, memory_, host_, stream.random);
      }
      lock.lock();
      if (status && error_) host_->status_free(host_->self, status);
      if (status && !error_) error_ = status;
      if (work.graph) --work.graph->in_flight;
    }
    ++stream.done;
    changed_.notify_all();
  }
}

void Streams::wait_done(Stream* stream) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [stream, ticket = stream->enqueued] { return stream->done >= ticket; });
}

bool Streams::all_done() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const auto& s) { return s->done == s->enqueued; });
}

void Streams::wait_all_done() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return all_done(); });
}

gestalt_status* Streams::take_error() {
  std::unique_lock lock(mutex_);
  if (!error_) return nullptr;
  // What was enqueued before the error is known must not run afterwards.
  changed_.wait(lock, [this] { return all_done(); });
  gestalt_status* error = error_;
  error_ = nullptr;
  return error;
}

void Streams::wait_graph_done(const Graph& graph) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&graph] { return graph.in_flight == 0; });
}

}  // namespace gestalt::device_sim
