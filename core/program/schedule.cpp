// Pass 8, second half: events. A node that touches what a node of another stream made (or still reads, if it writes)
// waits for an event recorded right after that node, unless an earlier wait covers it.

#include "core/program/schedule.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace gestalt::core {

namespace {

struct Access {
  int64_t last_write = -1;
  std::vector<uint32_t> reads;  // since the last write
};

// The storage that a value lives in: a sink is the storage of its target.
const Value* storage(Value* v) { return v->sink ? v->sink->root() : v->root(); }

}  // namespace

Schedule make_schedule(const Binding& binding) {
  const auto& nodes = binding.nodes();
  Schedule s;
  for (const BoundNode& b : nodes) s.num_streams = std::max(s.num_streams, b.node->stream + 1);
  const auto streams = static_cast<size_t>(s.num_streams);
  s.clocks.assign(nodes.size(), std::vector<uint32_t>(streams, 0));
  std::vector<std::vector<uint32_t>> now(streams, std::vector<uint32_t>(streams, 0));
  std::unordered_map<const Value*, Access> accesses;
  std::map<uint32_t, uint32_t> event_after;  // node index -> event
  struct Wait {
    uint32_t node, event;
  };
  std::vector<Wait> waits;

  for (uint32_t i = 0; i < nodes.size(); ++i) {
    const Node& n = *nodes[i].node;
    const auto me = static_cast<size_t>(n.stream);
    std::vector<uint32_t> after;
    for (size_t k = 0; k < n.in.size(); ++k) {
      if (!n.in[k]) continue;
      Access& a = accesses[storage(n.in[k])];
      if (a.last_write >= 0) after.push_back(static_cast<uint32_t>(a.last_write));
      if (n.op->schema.input(k).mutated) after.insert(after.end(), a.reads.begin(), a.reads.end());
    }
    for (Value* v : n.out) {
      Access& a = accesses[storage(v)];
      if (a.last_write >= 0) after.push_back(static_cast<uint32_t>(a.last_write));
      after.insert(after.end(), a.reads.begin(), a.reads.end());
    }
    std::sort(after.begin(), after.end());
    for (auto it = after.rbegin(); it != after.rend(); ++it) {
      const auto other = static_cast<size_t>(nodes[*it].node->stream);
      if (other == me || now[me][other] > *it) continue;
      auto [event, fresh] = event_after.try_emplace(*it, s.num_events);
      s.num_events += fresh;
      waits.push_back({i, event->second});
      for (size_t t = 0; t < streams; ++t) now[me][t] = std::max(now[me][t], s.clocks[*it][t]);
      now[me][other] = std::max(now[me][other], *it + 1);
    }
    s.clocks[i] = now[me];
    s.clocks[i][me] = i + 1;
    now[me][me] = i + 1;
    for (size_t k = 0; k < n.in.size(); ++k) {
      if (!n.in[k]) continue;
      Access& a = accesses[storage(n.in[k])];
      if (n.op->schema.input(k).mutated) {
        a.last_write = i;
        a.reads.clear();
      } else {
        a.reads.push_back(i);
      }
    }
    for (Value* v : n.out) accesses[storage(v)] = {static_cast<int64_t>(i), {}};
  }

  using Kind = Schedule::Kind;
  if (s.num_streams > 1) {
    const uint32_t start = s.num_events++;
    s.items.push_back({Kind::kRecord, 0, start, 0});
    for (int t = 1; t < s.num_streams; ++t) s.items.push_back({Kind::kWait, 0, start, t});
  }
  size_t w = 0;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    const int stream = nodes[i].node->stream;
    for (; w < waits.size() && waits[w].node == i; ++w) s.items.push_back({Kind::kWait, 0, waits[w].event, stream});
    s.items.push_back({Kind::kNode, i, 0, stream});
    if (auto it = event_after.find(i); it != event_after.end())
      s.items.push_back({Kind::kRecord, 0, it->second, stream});
  }
  for (int t = 1; t < s.num_streams; ++t) {
    const uint32_t end = s.num_events++;
    s.items.push_back({Kind::kRecord, 0, end, t});
    s.items.push_back({Kind::kWait, 0, end, 0});
  }
  return s;
}

}  // namespace gestalt::core
