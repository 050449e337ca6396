#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/program/executable.h"
#include "core/program/passes.h"
#include "core/runtime/arena.h"

namespace gestalt::core {

// The arenas of a session, one a stream, shared by its programs: they run one after the other, so each arena is as large
// as the largest plan, to the byte.
class ArenaSet {
 public:
  explicit ArenaSet(Device& device) : device_(device) {}
  // Makes room for a plan; existing arenas may move, then generation() changes. Only while the device is idle.
  void reserve(const std::vector<uint64_t>& bytes);
  std::vector<void*> addresses() const;
  uint64_t bytes(size_t stream) const { return stream < arenas_.size() ? arenas_[stream].bytes() : 0; }
  uint64_t total_bytes() const;
  uint64_t generation() const { return generation_; }

 private:
  Device& device_;
  std::vector<Arena> arenas_;
  uint64_t generation_ = 0;
};

// One program of a session with its dimensions, kernels and captured graphs.
class Compiled {
 public:
  // `record` fills the program; passes that `record` does not run itself (dead nodes, streams) run afterwards.
  Compiled(const OpRegistry& ops, const Registry& registry, Device& device, const KernelPolicy& policy, int num_streams,
           const std::function<void(Program&)>& declare_dims, const std::function<void(Program&)>& record);

  Executable& executable() { return *executable_; }
  const Executable& executable() const { return *executable_; }
  const Program& program() const { return executable_->program(); }
  // Attaches to the arenas if they moved.
  void attach(ArenaSet& arenas);
  void set_dims(Device& device, const std::vector<std::pair<std::string, int64_t>>& sizes);
  // Runs directly, or by a graph captured on first use. Graphs are dropped when addresses or sizes change.
  void run(Device& device, const std::vector<Stream>& streams, bool accumulate, bool capture);
  // After bind_input: graphs hold the old addresses.
  void forget_graphs() {
    graphs_[0] = Graph();
    graphs_[1] = Graph();
  }

 private:
  DimTable dims_;
  std::unique_ptr<Executable> executable_;
  uint64_t generation_ = 0;
  std::vector<std::pair<std::string, int64_t>> sizes_;
  Graph graphs_[2];
};

}  // namespace gestalt::core
