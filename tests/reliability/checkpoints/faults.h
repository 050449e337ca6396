// Checkpoints under faults: a stand-in for a trainer, whose state is a function of the step, and those who disturb it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/checkpoint/folder.h"
#include "core/checkpoint/reader.h"
#include "core/checkpoint/saver.h"

namespace gestalt::test {

struct Options {
  std::filesystem::path folder;
  std::string component = "gestalt.hdf5";
  int64_t steps = 3;            // saves
  int64_t writers = 1;
  int64_t bytes = 64 << 10;     // of the state
  int64_t runs = 100;           // kills, flips
  int64_t stride = 1, first = 0;  // of the system calls that are visited
  uint64_t seed = 1;
  bool process = false;         // saver and writers are processes
  bool marks = false;           // system calls that a tracer recognises, around the second save
};
Options parse(int argc, char** argv);

// The plugin of this build that has the component.
class Plugins {
 public:
  explicit Plugins(const std::string& component);
  ~Plugins() { registry_.shutdown(); }
  core::Registry& registry() { return registry_; }

 private:
  core::Registry registry_;
};

// The state at a step: six tensors of several types, one of them most of the bytes.
std::vector<core::HostTensor> state_at(int64_t step, int64_t bytes, char* room);
uint64_t room_for(int64_t bytes);

// The newest checkpoint, checked wholly and compared with state_at; -1: there is none. Throws when it is not right.
int64_t check_newest(core::Registry& registry, const Options& options);

// How a program was ended, and what it printed on standard output.
struct Ended {
  int status = 0;
  std::string output;
  std::vector<int64_t> acknowledged() const;  // "ack N" lines
};
// Starts this program again with other arguments, below `before` (a tracer and its arguments).
class Child {
 public:
  Child(const std::vector<std::string>& before, const std::vector<std::string>& arguments);
  Child(const Child&) = delete;
  int pid() const { return pid_; }
  void wait_for_ack(int timeout_ms);  // until one more is printed
  Ended wait();                       // until every process that holds its output has ended

 private:
  bool read_some(Ended& out);
  int pid_ = -1, output_ = -1;
  Ended so_far_;
};
std::vector<std::string> arguments_of(const std::string& mode, const Options& options);

int run_train(const Options& options);
int run_kill(const Options& options);
int run_syscalls(const Options& options);
int run_flips(const Options& options);

}  // namespace gestalt::test
