#include "core/session/compiled.h"

namespace gestalt::core {

void ArenaSet::reserve(const std::vector<uint64_t>& bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i < arenas_.size() && arenas_[i].bytes() >= bytes[i]) continue;
    if (i >= arenas_.size()) arenas_.resize(i + 1);
    arenas_[i] = Arena();  // first give back, then ask for more
    arenas_[i] = Arena(device_, bytes[i], Category::kActivations);
    ++generation_;
  }
}

std::vector<void*> ArenaSet::addresses() const {
  std::vector<void*> v;
  for (const Arena& a : arenas_) v.push_back(a.bytes() ? a.at(0) : nullptr);
  return v;
}

uint64_t ArenaSet::total_bytes() const {
  uint64_t n = 0;
  for (const Arena& a : arenas_) n += a.bytes();
  return n;
}

Compiled::Compiled(const OpRegistry& ops, const Registry& registry, Device& device, const KernelPolicy& policy,
                   int num_streams, const std::function<void(Program&)>& declare_dims,
                   const std::function<void(Program&)>& record) {
  auto program = std::make_unique<Program>(ops, dims_);
  if (policy.groups)
    for (const auto& [axis, group] : policy.groups->all()) program->axis_sizes[axis] = group.size;
  declare_dims(*program);
  record(*program);
  remove_dead_nodes(*program);
  assign_streams(*program, num_streams);
  executable_ = std::make_unique<Executable>(std::move(program), registry, device, policy);
}

void Compiled::attach(ArenaSet& arenas) {
  arenas.reserve(executable_->plan().arena_bytes);
  if (generation_ == arenas.generation() + 1) return;
  executable_->attach(arenas.addresses());
  generation_ = arenas.generation() + 1;
  forget_graphs();
}

void Compiled::set_dims(Device& device, const std::vector<std::pair<std::string, int64_t>>& sizes) {
  if (sizes == sizes_) return;
  device.sync();  // frames must not change under work in flight
  executable_->set_dims(sizes);
  sizes_ = sizes;
  forget_graphs();
}

void Compiled::run(Device& device, const std::vector<Stream>& streams, bool accumulate, bool capture) {
  if (!capture) return executable_->run(streams, accumulate);
  Graph& graph = graphs_[accumulate ? 1 : 0];
  if (!graph) {
    device.capture_begin(streams[0]);
    executable_->run(streams, accumulate);
    graph = device.capture_end(streams[0]);
  }
  device.replay(graph, streams[0]);
}

}  // namespace gestalt::core
