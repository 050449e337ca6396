// Pass 1: gradients. Each op's vjp is called once, in reverse order; a second use of a value adds, a second use of a
// parameter accumulates into its gradient buffer.

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/program/passes.h"
#include "gestalt/abi/optimizer.h"

namespace gestalt::core {

namespace {

class Gradients {
 public:
  Gradients(Builder& builder, const std::vector<const Parameter*>& parameters, bool scaled)
      : builder_(builder), scaled_(scaled) {
    for (const Parameter* p : parameters) {
      if (!p->trainable) continue;
      Value* v = builder.program().find_input("param:" + p->path);
      if (v)
        wanted_.emplace(v, p);
      else
        unused_.push_back(p->path);
    }
  }

  std::vector<std::string> run() {
    Program& program = builder_.program();
    expand_ops_without_gradient();
    std::vector<Node*> forward = program.nodes;
    builder_.region = Region::kBackward;
    for (const Program::Loss& loss : program.losses) {
      builder_.path = "loss." + loss.name;
      accumulate(loss.sum, gradient_of_loss(std::string(dtype_name(loss.sum->type.dtype))));
    }
    for (auto it = forward.rbegin(); it != forward.rend(); ++it) backward(**it);
    send_to_sinks();
    builder_.region = Region::kForward;
    builder_.path.clear();
    return unused_;
  }

 private:
  // Values that depend on a parameter through floating-point data.
  bool active(const Value* v) const { return v && (active_.contains(v) || wanted_.contains(const_cast<Value*>(v))); }

  void mark(const Node& n) {
    if (!std::any_of(n.in.begin(), n.in.end(), [&](const Value* v) { return active(v); })) return;
    for (size_t i = 0; i < n.out.size(); ++i)
      if (!n.op->schema.output(i).nograd && is_float(n.out[i]->type.dtype)) active_.insert(n.out[i]);
  }

  void expand_ops_without_gradient() {
    Program& program = builder_.program();
    std::vector<Node*> nodes = std::move(program.nodes);
    program.nodes.clear();
    for (Node* n : nodes) expand(n, 0);
  }

  void expand(Node* n, int depth) {
    Program& program = builder_.program();
    mark(*n);
    const bool flows = std::any_of(n->out.begin(), n->out.end(), [&](const Value* v) { return active(v); });
    if (!flows || n->op->vjp || !n->op->decompose)
      program.nodes.push_back(n);
    else
      for (Node* inner : decomposed_below(program, *n, depth)) expand(inner, depth + 1);
  }

  void backward(Node& n) {
    std::vector<Value*> grad_out(n.out.size());
    bool any = false;
    for (size_t i = 0; i < n.out.size(); ++i) {
      auto it = grads_.find(n.out[i]);
      if (it == grads_.end()) continue;
      grad_out[i] = it->second;
      any = true;
    }
    uint64_t needs = 0;
    for (size_t i = 0; any && i < n.in.size(); ++i) {
      if (!active(n.in[i])) continue;
      if (i >= 64)
        fail(GESTALT_UNSUPPORTED, "[{} at {}] input {} of {} needs a gradient, expected at most 64 inputs; join in steps",
             n.op->name(), n.path, i, n.in.size());
      needs |= 1ull << i;
    }
    if (!needs) return;
    if (n.op->schema.mutates() || n.op->flags & GESTALT_OP_MUTATES)
      fail(GESTALT_INVALID_ARGUMENT, "[{} at {}] writes its inputs and lies where gradients flow", n.op->name(), n.path);
    if (!n.op->vjp)
      fail(GESTALT_UNSUPPORTED, "[{} at {}] has no gradient: the op has neither vjp nor decompose", n.op->name(), n.path);
    builder_.path = n.path;
    ComposeContext c(builder_, n.in, n.out, grad_out, needs, n.attrs);
    n.op->vjp(c);
    if (c.result.size() < n.in.size()) c.result.resize(n.in.size());
    for (size_t i = 0; i < n.in.size(); ++i) {
      if (!(needs >> i & 1) || !c.result[i]) continue;
      if (!(c.result[i]->type == n.in[i]->type))
        fail(GESTALT_INVALID_ARGUMENT, "[{} at {}] gradient of '{}' is {}, expected the type of {}", n.op->name(), n.path,
             n.op->schema.input(i).name, builder_.program().value_text(c.result[i]),
             builder_.program().value_text(n.in[i]));
      accumulate(n.in[i], c.result[i]);
    }
  }

  // 1, or the loss scale out of the scalars that change between steps.
  Value* gradient_of_loss(const std::string& dtype) {
    const std::vector<int64_t> scalar;
    if (!scaled_) return builder_.op("core.fill", {}, {{"shape", scalar}, {"dtype", dtype}, {"value", 1.0}});
    Value* one = builder_.op("core.slice", {builder_.batch("step_scalars", true)},
                             {{"dim", int64_t{0}},
                              {"begin", int64_t{GESTALT_SCALAR_LOSS_SCALE}},
                              {"end", int64_t{GESTALT_SCALAR_LOSS_SCALE + 1}}});
    return builder_.op("core.cast", {builder_.op("core.reshape", {one}, {{"shape", scalar}})}, {{"dtype", dtype}});
  }

  void accumulate(Value* v, Value* g) {
    if (auto it = wanted_.find(v); it != wanted_.end()) {
      contributions_.push_back({it->second, g});
      return;
    }
    Value*& slot = grads_[v];
    slot = slot ? builder_.op("core.add", {slot, g}) : g;
  }

  // A contribution is written by the kernel that computes it when its schema allows that and nobody else reads it; else
  // a cast right after it adds it.
  void send_to_sinks() {
    Program& program = builder_.program();
    std::vector<uint32_t> uses = count_uses(program);
    auto uses_of = [&](const Value* v) { return v->id < uses.size() ? uses[v->id] : 0u; };
    std::unordered_map<const Value*, int> sent;
    for (const auto& [p, g] : contributions_) ++sent[g];
    std::unordered_map<const Node*, std::vector<Node*>> after;
    std::vector<Node*> at_end;
    std::unordered_set<const Value*> reached;
    for (const auto& [p, g] : contributions_) {
      const uint32_t dtype = accumulation_dtype(p->type.dtype);
      TensorType type = p->type;
      type.dtype = dtype;
      Value* sink = program.input("grad:" + p->path, type);
      reached.insert(program.find_input("param:" + p->path));
      const bool direct = !g->base && g->producer && !g->sink && sent[g] == 1 && uses_of(g) == 0 &&
                          g->producer->region == Region::kBackward &&
                          g->producer->op->schema.output(g->output).accumulates;
      if (direct) {
        g->sink = sink;
        g->type.dtype = dtype;
        continue;
      }
      std::vector<Node*> made;
      builder_.target = &made;
      builder_.path = g->producer ? g->producer->path : p->path;
      builder_.sink_by_cast(g, sink);
      builder_.target = &program.nodes;
      auto& place = g->producer && g->producer->region == Region::kBackward ? after[g->producer] : at_end;
      place.insert(place.end(), made.begin(), made.end());
    }
    std::vector<Node*> nodes;
    for (Node* n : program.nodes) {
      nodes.push_back(n);
      if (auto it = after.find(n); it != after.end()) nodes.insert(nodes.end(), it->second.begin(), it->second.end());
    }
    nodes.insert(nodes.end(), at_end.begin(), at_end.end());
    program.nodes = std::move(nodes);
    for (const auto& [v, p] : wanted_)
      if (!reached.contains(v)) unused_.push_back(p->path);
    std::sort(unused_.begin(), unused_.end());
  }

  struct Contribution {
    const Parameter* parameter;
    Value* gradient;
  };

  Builder& builder_;
  std::unordered_map<Value*, const Parameter*> wanted_;
  std::unordered_set<const Value*> active_;
  std::unordered_map<Value*, Value*> grads_;
  std::vector<Contribution> contributions_;
  std::vector<std::string> unused_;
  bool scaled_;
};

}  // namespace

std::vector<std::string> add_gradients(Builder& builder, const std::vector<const Parameter*>& parameters,
                                       bool scaled) {
  return Gradients(builder, parameters, scaled).run();
}

}  // namespace gestalt::core
