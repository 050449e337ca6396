#include "plugins/comm_threads/meeting.h"

#include <cstring>

#include "gestalt/error.hpp"

namespace gestalt::comm_threads {

template <class Predicate>
void Meeting::wait_for(std::unique_lock<std::mutex>& lock, Predicate done) {
  alarm_->changed.wait(lock, [&] { return alarm_->rung || done(); });
  if (!done()) throw Error(GESTALT_UNAVAILABLE, "[comm] the communicator was aborted");
}

void Meeting::wait() {
  std::unique_lock lock(alarm_->mutex);
  if (alarm_->rung) throw Error(GESTALT_UNAVAILABLE, "[comm] the communicator was aborted");
  const uint64_t mine = round_;
  if (++come_ == size_) {
    come_ = 0;
    ++round_;
    alarm_->changed.notify_all();
    return;
  }
  wait_for(lock, [&] { return round_ != mine; });
}

const std::vector<Call>& Meeting::bring(size_t member, Call call) {
  brought_[member] = std::move(call);  // ordered by the lock of wait()
  wait();
  return brought_;
}

void Meeting::post(size_t from, size_t to, Letter& letter) {
  std::unique_lock lock(alarm_->mutex);
  letters_[{from, to}].push_back(&letter);
  alarm_->changed.notify_all();
}

void Meeting::wait_taken(const Letter& letter) {
  std::unique_lock lock(alarm_->mutex);
  wait_for(lock, [&] { return letter.taken; });
}

void Meeting::take(size_t from, size_t to, void* data, uint64_t bytes) {
  std::unique_lock lock(alarm_->mutex);
  std::vector<Letter*>& box = letters_[{from, to}];
  wait_for(lock, [&] { return !box.empty(); });
  Letter* letter = box.front();
  box.erase(box.begin());
  const bool fits = letter->bytes == bytes;
  if (fits && bytes > 0) std::memcpy(data, letter->data, bytes);
  const uint64_t sent = letter->bytes;
  letter->taken = true;
  alarm_->changed.notify_all();
  if (!fits)
    throw InvalidArgument("[recv] got a message of " + std::to_string(sent) + " bytes, expected " + std::to_string(bytes));
}

namespace {

// Worlds that somebody holds, by room.
std::mutex rooms_mutex;
std::map<std::string, std::weak_ptr<World>>& rooms() {
  static std::map<std::string, std::weak_ptr<World>> all;
  return all;
}

}  // namespace

std::shared_ptr<World> World::enter(const std::string& room, int64_t rank, int64_t size) {
  if (size < 1 || rank < 0 || rank >= size)
    throw Error(GESTALT_CONFIG_ERROR, "[comm] rank " + std::to_string(rank) + " of " + std::to_string(size) +
                                          " ranks, expected a rank from 0 and below the number of ranks");
  const std::lock_guard lock(rooms_mutex);
  std::shared_ptr<World> world = rooms()[room].lock();
  if (!world) {
    world = std::shared_ptr<World>(new World(size));
    rooms()[room] = world;
  }
  if (world->size_ != size)
    throw Error(GESTALT_CONFIG_ERROR, "[comm] room '" + room + "' has " + std::to_string(world->size_) + " ranks, got " +
                                          std::to_string(size));
  if (world->present_[static_cast<size_t>(rank)])
    throw Error(GESTALT_CONFIG_ERROR, "[comm] rank " + std::to_string(rank) + " is in room '" + room + "' already");
  world->present_[static_cast<size_t>(rank)] = true;
  return world;
}

void World::leave(int64_t rank) {
  const std::lock_guard lock(rooms_mutex);
  present_[static_cast<size_t>(rank)] = false;
}

std::shared_ptr<Meeting> World::meeting(int64_t rank, const std::vector<int64_t>& ranks) {
  const std::lock_guard lock(mutex_);
  const size_t time = times_opened_[{rank, ranks}]++;
  std::shared_ptr<Meeting>& m = meetings_[{time, ranks}];
  if (!m) m = std::make_shared<Meeting>(alarm_, ranks.size());
  return m;
}

}  // namespace gestalt::comm_threads
