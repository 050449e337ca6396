// The saver process: executed at the start of a training, never forked from its threads, so that a crash of a format's
// library costs a save and not the training. Snapshots reach it in shared memory, jobs as JSON over a socket. With
// several writers it executes as many processes of the same kind, each for one shard.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "core/checkpoint/saver.h"
#include "support/json.h"

namespace gestalt::core {

// Messages over a stream socket: eight bytes of length, then JSON.
class Channel {
 public:
  explicit Channel(int descriptor) : descriptor_(descriptor) {}
  Channel(Channel&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Channel& operator=(Channel&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Channel();
  bool send(const support::Json& message) const;     // false: the other side is gone
  std::optional<support::Json> receive() const;      // none: the other side is gone
  bool has_message(int timeout_ms) const;            // or its end

 private:
  int descriptor_;
};

// A process that serves one channel, with `memory` as its shared memory.
class Served {
 public:
  static constexpr int kSocket = 3, kMemory = 4, kLock = 5;  // the descriptors that it finds open
  // lock: a descriptor that the process keeps open; -1: whatever it inherits.
  Served(const std::string& command, int memory, int lock);
  ~Served();  // closes the channel and waits for the process, which first ends what it does
  Served(Served&& other) noexcept : pid_(std::exchange(other.pid_, -1)), channel_(std::move(other.channel_)) {}
  Channel& channel() { return channel_; }
  pid_t pid() const { return pid_; }
  std::string ending();  // after the channel's end: "signal 9"

 private:
  pid_t pid_ = -1;
  Channel channel_;
};

// `command` is a program whose hidden verb _saver calls serve_saver.
std::unique_ptr<Saver> make_process_saver(const std::string& command, const Registry& registry, const Instance& plugin,
                                          const ConfigNode* section, const SaveSettings& settings, int lock);

// The process's side; returns when the trainer is gone.
int serve_saver();

}  // namespace gestalt::core
