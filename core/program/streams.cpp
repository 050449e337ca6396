// Pass 8: streams. Nodes that only feed gradient buffers (weight gradients) leave the critical path and run on a second
// queue; the binder puts events where queues meet.

#include <algorithm>
#include <unordered_map>

#include "core/program/passes.h"

namespace gestalt::core {

void assign_streams(Program& program, int num_streams) {
  if (num_streams < 2) return;
  const std::vector<uint32_t> uses = count_uses(program);
  for (Node* n : program.nodes) {
    const bool only_sinks = n->region == Region::kBackward && !n->is_view() && !n->out.empty() &&
                            std::all_of(n->out.begin(), n->out.end(), [&](const Value* v) {
                              return v->sink && (v->id >= uses.size() || uses[v->id] == 0);
                            });
    n->stream = only_sinks ? 1 : 0;
  }
}

}  // namespace gestalt::core
