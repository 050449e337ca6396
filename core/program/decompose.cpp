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
  node.op->decompose(c);
  if (c.result.size() < node.out.size())
    fail(GESTALT_INVALID_ARGUMENT, "[{} at {}] decompose made {} outputs, expected {}", node.op->name(), node.path,
         c.result.size(), node.out.size());

  // The last op writes straight into the value that others read, unless that value is a view, an input or given twice.
  std::unordered_set<Value*> taken;
  for (size_t i = 0; i < node.out.size(); ++i) {
    Value *to = node.out[i], *from = c.result[i];
    if (!from || !from->type.same_shape(to->type))
      fail(GESTALT_INVALID_ARGUMENT, "[{} at {}] decompose: output {} is {}, expected {}", node.op->name(), node.path, i,
           program.value_text(from), program.value_text(to));
    const bool made_here = from->producer && from->producer->id > node.id;
    if (from->base || !made_here || from->sink || !taken.insert(from).second || from->type.dtype != to->type.dtype) {
      from = builder.op("core.cast", {from}, {{"dtype", std::string(dtype_name(to->type.dtype))}});
    }
    for (Node* n : nodes) {
      for (Value*& v : n->in)
        if (v == from) v = to;
      for (Value* v : n->out)
        if (v->base == from) v->base = to;
    }
    from->producer->out[from->output] = to;
    to->producer = from->producer;
    to->output = from->output;
  }
  return nodes;
}

}  // namespace gestalt::core
