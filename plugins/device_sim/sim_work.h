// One thing in a stream's queue or in a captured graph, and how it runs.
#pragma once

#include <memory>
#include <random>
#include <vector>

#include "plugins/device_sim/sim_memory.h"

namespace gestalt::device_sim {

struct Stream;
struct Graph;

struct Work {
  enum class Kind { kKernel, kCopy, kFill, kWait, kGraph, kStop };
  Kind kind = Kind::kStop;
  // kKernel
  gestalt_status* (*run)(void* state, const gestalt_call* call) = nullptr;
  void* state = nullptr;
  const gestalt_call* call = nullptr;
  uint64_t num_in = 0, num_out = 0, workspace_size = 0;
  // kCopy, kFill
  void* dst = nullptr;
  const void* src = nullptr;
  uint64_t bytes = 0;
  int32_t direction = 0;
  uint8_t byte = 0;
  // kWait: until `stream` has done `ticket` pieces of work
  Stream* stream = nullptr;
  uint64_t ticket = 0;
  // kGraph
  Graph* graph = nullptr;
};

// A call as it was when it was captured: the host may change its own afterwards, as with arguments of a CUDA graph.
struct CallCopy {
  CallCopy(const gestalt_call& from, uint64_t num_in, uint64_t num_out);
  gestalt_call call;
  std::vector<gestalt_view> views;
  std::vector<int64_t> sizes;
  std::vector<const gestalt_view*> pointers;
};

// Nodes in the order of recording, with an edge for each thing that a node has to wait for.
struct Graph {
  struct Node {
    Work work;
    std::unique_ptr<CallCopy> call;
    std::vector<uint32_t> after;
  };
  std::vector<Node> nodes;
  uint64_t in_flight = 0;  // under the device's lock

  // Fixed by finish(), so that a replay does not allocate.
  std::vector<std::vector<uint32_t>> before;
  std::vector<uint32_t> waiting, ready;
  std::mutex replay_mutex;

  uint32_t add(const Work& work, const std::vector<uint32_t>& after);
  // True when every node is one of `ends` or has to be done before one of them.
  bool all_joined(const std::vector<uint32_t>& ends) const;
  void finish();
};

// Opens what the work holds, runs it, closes it. Kinds kKernel, kCopy, kFill and kGraph. A graph runs its nodes one
// after another in an order drawn from `random` among those that its edges allow: a missing edge shows sooner or later.
gestalt_status* execute(const Work& work, Memory& memory, const gestalt_host* host, std::minstd_rand& random) noexcept;

}  // namespace gestalt::device_sim
