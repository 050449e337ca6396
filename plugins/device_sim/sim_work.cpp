#include "plugins/device_sim/sim_work.h"

#include <algorithm>
#include <cstring>

#include "gestalt/error.hpp"

namespace gestalt::device_sim {

namespace {

// Keeps the pages of one piece of work open; closes what it opened, also when a later range is refused.
class Hold {
 public:
  explicit Hold(Memory& memory) : memory_(memory) {}
  ~Hold() {
    for (uint64_t i = 0; i < opened_; ++i) memory_.close(range(i));
  }
  void kernel(const Work& work) {
    work_ = &work;
    count_ = work.num_in + work.num_out + 1;
    for (; opened_ < count_; ++opened_) memory_.open(range(opened_));
  }

 private:
  Range range(uint64_t i) const {
    const gestalt_call& call = *work_->call;
    if (i == work_->num_in + work_->num_out) return range_of(call.workspace, work_->workspace_size);
    const gestalt_view* view = i < work_->num_in ? call.in[i] : call.out[i - work_->num_in];
    return view ? range_of(*view) : Range{};
  }

  Memory& memory_;
  const Work* work_ = nullptr;
  uint64_t count_ = 0, opened_ = 0;
};

class HoldRange {
 public:
  HoldRange(Memory& memory, Range range) : memory_(memory), range_(range) { memory_.open(range_); }
  ~HoldRange() { memory_.close(range_); }

 private:
  Memory& memory_;
  Range range_;
};

void copy(const Work& work, Memory& memory) {
  const Range dst = range_of(work.dst, work.bytes), src = range_of(work.src, work.bytes);
  HoldRange to(memory, work.direction == GESTALT_COPY_TO_HOST ? Range{} : dst);
  HoldRange from(memory, work.direction == GESTALT_COPY_TO_DEVICE ? Range{} : src);
  std::memmove(work.dst, work.src, work.bytes);
}

gestalt_status* replay(Graph& graph, Memory& memory, const gestalt_host* host, std::minstd_rand& random) {
  std::lock_guard lock(graph.replay_mutex);
  graph.ready.clear();
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    graph.waiting[i] = static_cast<uint32_t>(graph.nodes[i].after.size());
    if (graph.waiting[i] == 0) graph.ready.push_back(i);
  }
  while (!graph.ready.empty()) {
    std::swap(graph.ready[random() % graph.ready.size()], graph.ready.back());
    const uint32_t node = graph.ready.back();
    graph.ready.pop_back();
    if (gestalt_status* status = execute(graph.nodes[node].work, memory, host, random)) return status;
    for (uint32_t next : graph.before[node])
      if (--graph.waiting[next] == 0) graph.ready.push_back(next);
  }
  return nullptr;
}

}  // namespace

CallCopy::CallCopy(const gestalt_call& from, uint64_t num_in, uint64_t num_out)
    : call(from),
      views(num_in + num_out),
      sizes(2 * GESTALT_MAX_NDIM * (num_in + num_out)),
      pointers(num_in + num_out) {
  for (uint64_t i = 0; i < num_in + num_out; ++i) {
    const gestalt_view* view = i < num_in ? from.in[i] : from.out[i - num_in];
    if (!view) continue;
    views[i] = *view;
    views[i].shape = &sizes[2 * GESTALT_MAX_NDIM * i];
    views[i].strides = views[i].shape + GESTALT_MAX_NDIM;
    std::copy_n(view->shape, view->ndim, views[i].shape);
    std::copy_n(view->strides, view->ndim, views[i].strides);
    pointers[i] = &views[i];
  }
  call.in = pointers.data();
  call.out = pointers.data() + num_in;
}

uint32_t Graph::add(const Work& work, const std::vector<uint32_t>& after) {
  Node& node = nodes.emplace_back();
  node.work = work;
  node.after = after;
  if (work.kind == Work::Kind::kKernel) {
    node.call = std::make_unique<CallCopy>(*work.call, work.num_in, work.num_out);
    node.work.call = &node.call->call;
  }
  return static_cast<uint32_t>(nodes.size() - 1);
}

bool Graph::all_joined(const std::vector<uint32_t>& ends) const {
  std::vector<bool> reached(nodes.size());
  for (uint32_t end : ends) reached[end] = true;
  // Edges go backwards in the order of recording, so one pass from the end suffices.
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!reached[i]) return false;
    for (uint32_t before_it : nodes[i].after) reached[before_it] = true;
  }
  return true;
}

void Graph::finish() {
  before.resize(nodes.size());
  waiting.resize(nodes.size());
  ready.reserve(nodes.size());
  for (uint32_t i = 0; i < nodes.size(); ++i)
    for (uint32_t earlier : nodes[i].after) before[earlier].push_back(i);
}

gestalt_status* execute(const Work& work, Memory& memory, const gestalt_host* host, std::minstd_rand& random) noexcept {
  gestalt_status* status = nullptr;
  gestalt_status* thrown = guard(host, [&] {
    switch (work.kind) {
      case Work::Kind::kKernel: {
        Hold hold(memory);
        hold.kernel(work);
        status = work.run(work.state, work.call);
        break;
      }
      case Work::Kind::kCopy:
        copy(work, memory);
        break;
      case Work::Kind::kFill: {
        HoldRange hold(memory, range_of(work.dst, work.bytes));
        std::memset(work.dst, work.byte, work.bytes);
        break;
      }
      case Work::Kind::kGraph:
        status = replay(*work.graph, memory, host, random);
        break;
      case Work::Kind::kWait:
      case Work::Kind::kStop:
        break;
    }
  });
  return thrown ? thrown : status;
}

}  // namespace gestalt::device_sim
