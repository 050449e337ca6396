// Pass 3: recomputation. A backward node that reads a recomputable forward value reads a copy of the op instead, recorded
// just before its first use, so that the forward value dies in the forward.

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/base/text.h"
#include "core/program/passes.h"

namespace gestalt::core {

namespace {

class Recompute {
 public:
  Recompute(Program& program, const RecomputePolicy& policy) : program_(program), policy_(policy) {}

  size_t run() {
    find_kept();
    std::vector<Node*> nodes;
    for (Node* n : program_.nodes) {
      if (n->region == Region::kBackward)
        for (Value*& v : n->in)
          if (v) v = again(v, nodes);
      nodes.push_back(n);
    }
    program_.nodes = std::move(nodes);
    return count_;
  }

 private:
  bool in_group(const Node& n) const {
    return std::find(policy_.groups.begin(), policy_.groups.end(), n.op->group) != policy_.groups.end();
  }

  // The module that a path pattern names and the node lies in: the shortest prefix of its path that matches. "" if none.
  const std::string& region_of(const Node& n) {
    auto [it, fresh] = regions_.try_emplace(n.path);
    if (!fresh) return it->second;
    for (size_t end = n.path.find('.'); it->second.empty(); end = n.path.find('.', end + 1)) {
      const std::string prefix = n.path.substr(0, end);
      for (const std::string& pattern : policy_.paths)
        if (glob_match(pattern, prefix)) it->second = prefix;
      if (end == std::string::npos) break;
    }
    return it->second;
  }

  // What leaves a recomputed module is kept: it is where the recomputation of the next one starts.
  void find_kept() {
    for (const auto& [name, v] : program_.outputs) kept_.insert(v->root());
    for (Node* n : program_.nodes) {
      if (n->region != Region::kForward || n->is_view()) continue;
      for (Value* v : n->in) {
        if (!v || !v->root()->producer) continue;
        if (region_of(*v->root()->producer) != region_of(*n)) kept_.insert(v->root());
      }
    }
  }

  bool needed(Value* v) {
    Value* root = v->root();
    const Node* n = root->producer;
    if (!n || n->region != Region::kForward || !(n->op->flags & GESTALT_OP_PURE)) return false;
    if (std::any_of(n->out.begin(), n->out.end(), [](const Value* o) { return o->sink; })) return false;
    return in_group(*n) || (!region_of(*n).empty() && !kept_.contains(root));
  }

  Value* again(Value* v, std::vector<Node*>& nodes) {
    if (!needed(v)) return v;
    if (auto it = copies_.find(v); it != copies_.end()) return it->second;
    Node* n = v->producer;
    Node* copy = program_.new_node(*n->op);
    copy->attrs = n->attrs;
    copy->path = n->path;
    copy->region = Region::kRecompute;
    for (Value* in : n->in) copy->in.push_back(in ? again(in, nodes) : nullptr);
    for (Value* out : n->out) {
      Value* c = program_.new_value(out->type);
      c->strides = out->strides;
      c->offset = out->offset;
      c->producer = copy;
      c->output = out->output;
      if (out->base) c->base = copy->in[0]->root();
      copies_.emplace(out, c);
      copy->out.push_back(c);
    }
    nodes.push_back(copy);
    count_ += !copy->is_view();
    return copies_.at(v);
  }

  Program& program_;
  const RecomputePolicy& policy_;
  std::unordered_map<std::string, std::string> regions_;
  std::unordered_set<const Value*> kept_;
  std::unordered_map<Value*, Value*> copies_;
  size_t count_ = 0;
};

}  // namespace

size_t recompute(Program& program, const RecomputePolicy& policy) {
  if (policy.paths.empty() && policy.groups.empty()) return 0;
  return Recompute(program, policy).run();
}

}  // namespace gestalt::core
