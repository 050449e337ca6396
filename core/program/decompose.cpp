#include <unordered_map>
#include <unordered_set>

#include "core/program/passes.h"

namespace gestalt::core {

std::vector<Node*> decomposed(Program& program, const Node& node) {
  if (!node.op->decompose) fail(GESTALT_INTERNAL, "[{}] has no decomposition", node.op->name());
  std::vector<Node*> nodes;
  Builder builder(program, {}, GESTALT_PHASE_TRAIN);
  builder.target = &nodes;
  builder.region = node.region;
  builder.path = node.path;
  const std::vector<Value*> none;
  ComposeContext c(builder, node.in, none, none, 0, node.attrs);
  c.result.assign(node.out.size(), nullptr);
  node.op->decompose(c);
  if (c.result.size() < node.out.size())
    fail(GESTALT_INVALID_ARGUMENT, "[{} at {}] decompose made {} outputs, expected {}", node.op->name(), node.path,
         c.result.size(), node.out.size());

  // The last op writes straight into the value that others read, unless its result is a view, was not made here, or is
  // given twice. A value with a sink is written by a cast: here others may read it, in the sink sums of earlier runs lie.
  std::unordered_set<const Node*> made(nodes.begin(), nodes.end());
  std::unordered_map<Value*, Value*> taken;  // result -> the value that replaced it
  for (size_t i = 0; i < node.out.size(); ++i) {
    Value *to = node.out[i], *from = c.result[i];
    if (!from || !from->type.same_shape(to->type))
      fail(GESTALT_INVALID_ARGUMENT, "[{} at {}] decompose: output {} is {}, expected {}", node.op->name(), node.path, i,
           program.value_text(from), program.value_text(to));
    if (auto it = taken.find(from); it != taken.end()) from = it->second;
    if (from->base || !made.contains(from->producer) || from->sink || to->sink || from != c.result[i] ||
        from->type.dtype != to->type.dtype) {
      from = builder.op("core.cast", {from}, {{"dtype", std::string(dtype_name(to->type.dtype))}});
    }
    for (Node* n : nodes) {
      for (Value*& v : n->in)
        if (v == from) v = to;
      for (Value* v : n->out)
        if (v->base == from) v->base = to;
    }
    taken.emplace(from, to);
    from->producer->out[from->output] = to;
    to->producer = from->producer;
    to->output = from->output;
  }
  for (Node* n : nodes) n->stream = node.stream;
  return nodes;
}

std::vector<Node*> decomposed_below(Program& program, const Node& node, int depth) {
  if (depth > kMostDecompositions)
    fail(GESTALT_INVALID_ARGUMENT, "[{} at {}] decompositions lead to others more than {} deep; does one lead to itself?",
         node.op->name(), node.path, kMostDecompositions);
  return decomposed(program, node);
}

}  // namespace gestalt::core
