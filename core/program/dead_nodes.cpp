// Pass 2: dead nodes.

#include <algorithm>
#include <unordered_set>

#include "core/program/passes.h"

namespace gestalt::core {

void remove_dead_nodes(Program& program) {
  std::unordered_set<const Value*> live;
  for (const auto& [name, v] : program.outputs) live.insert(v);
  std::vector<Node*> kept;
  for (auto it = program.nodes.rbegin(); it != program.nodes.rend(); ++it) {
    Node* n = *it;
    const bool effect = n->op->schema.mutates() || n->op->flags & (GESTALT_OP_MUTATES | GESTALT_OP_HOST_READ);
    const bool read = std::any_of(n->out.begin(), n->out.end(),
                                  [&](const Value* v) { return v->sink || live.contains(v); });
    if (!effect && !read) continue;
    for (const Value* v : n->in)
      if (v) live.insert(v);
    kept.push_back(n);
  }
  std::reverse(kept.begin(), kept.end());
  program.nodes = std::move(kept);
}

}  // namespace gestalt::core
