#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace gestalt::comm_threads {

// What ends all waiting of a world at once.
struct Alarm {
  std::mutex mutex;
  std::condition_variable changed;
  bool rung = false;
};

// What a member brings to a collective. Kept by the meeting, because after an alarm a member may leave while another
// still looks.
struct Call {
  const void* in = nullptr;
  void* out = nullptr;
  int64_t num_in = 0;  // elements
  uint32_t dtype = 0;
  std::vector<int64_t> send_counts;
};

// A message between two members that the sender has posted and the receiver has not yet taken.
struct Letter {
  const void* data;
  uint64_t bytes;
  bool taken = false;
};

// The place where the members of one group meet: all of them bring a call, and nobody leaves before all have come.
class Meeting {
 public:
  Meeting(std::shared_ptr<Alarm> alarm, size_t size) : alarm_(std::move(alarm)), size_(size), brought_(size) {}

  size_t size() const { return size_; }
  // Waits until all members have come. Throws when the alarm rings.
  void wait();
  // Brings a call and waits; what all brought is valid until the next wait().
  const std::vector<Call>& bring(size_t member, Call call);

  // A letter lies until the receiver takes it; the sender's memory must live until then (see wait_taken).
  void post(size_t from, size_t to, Letter& letter);
  void wait_taken(const Letter& letter);
  // Copies the oldest letter of `from` to `to` into `data` of `bytes` bytes.
  void take(size_t from, size_t to, void* data, uint64_t bytes);

 private:
  template <class Predicate>
  void wait_for(std::unique_lock<std::mutex>& lock, Predicate done);

  std::shared_ptr<Alarm> alarm_;
  const size_t size_;
  size_t come_ = 0;
  uint64_t round_ = 0;
  std::vector<Call> brought_;
  std::map<std::pair<size_t, size_t>, std::vector<Letter*>> letters_;
};

// The ranks of one room of this process.
class World {
 public:
  // The world of a room; all ranks of a room must agree on its size. It lives as long as somebody holds it.
  static std::shared_ptr<World> enter(const std::string& room, int64_t rank, int64_t size);

  int64_t size() const { return size_; }
  const std::shared_ptr<Alarm>& alarm() const { return alarm_; }
  // The meeting of these ranks; members that open the same list the same number of times share one.
  std::shared_ptr<Meeting> meeting(int64_t rank, const std::vector<int64_t>& ranks);
  void leave(int64_t rank);

 private:
  World(int64_t size) : size_(size), present_(static_cast<size_t>(size)) {}

  const int64_t size_;
  std::shared_ptr<Alarm> alarm_ = std::make_shared<Alarm>();
  std::vector<bool> present_;
  std::mutex mutex_;
  std::map<std::pair<int64_t, std::vector<int64_t>>, size_t> times_opened_;
  std::map<std::pair<size_t, std::vector<int64_t>>, std::shared_ptr<Meeting>> meetings_;
};

}  // namespace gestalt::comm_threads
