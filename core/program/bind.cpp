#include "core/program/bind.h"

#include <algorithm>
#include <set>

#include "core/base/text.h"
#include "core/program/collectives.h"
#include "core/program/passes.h"
#include "core/tensor/tensor.h"

namespace gestalt::core {

namespace {

// Views of a node's inputs and outputs for prepare: shapes as numbers, no data.
class PlanFrame {
 public:
  PlanFrame(const Program& program, const Node& node, const Device& device, bool at_max) {
    const size_t n = node.in.size() + node.out.size();
    tensors_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      const Value* v = i < node.in.size() ? node.in[i] : node.out[i - node.in.size()];
      gestalt_view* view = nullptr;
      if (v) {
        Tensor& t = tensors_[i];
        view = &t.view;
        view->dtype = v->type.dtype;
        view->ndim = v->type.ndim;
        t.on(device.type(), device.id());
        for (int k = 0; k < v->type.ndim; ++k) {
          const auto s = static_cast<size_t>(k);
          t.shape[k] = at_max ? program.dims().max(v->type.shape[s]) : program.dims().value(v->type.shape[s]);
          t.strides[k] = at_max ? program.dims().max(v->strides[s]) : program.dims().value(v->strides[s]);
        }
      }
      if (i < node.in.size())
        in_.push_back(view);
      else
        out_.push_back(view);
    }
  }
  const std::vector<const gestalt_view*>& in() const { return in_; }
  const std::vector<gestalt_view*>& out() const { return out_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<const gestalt_view*> in_;
  std::vector<gestalt_view*> out_;
};

gestalt_status* prepare(const Program& program, const Node& node, const gestalt_kernel* kernel, const gestalt_host* host,
                        const Device& device, uint64_t require, bool at_max, gestalt_plan& plan) {
  const PlanFrame frame(program, node, device, at_max);
  const AttrArray attrs(node.attrs);
  plan = {};
  plan.struct_size = sizeof(plan);
  plan.op = str_of(node.op->name());
  plan.path = str_of(node.path);
  plan.in = frame.in().data();
  plan.num_in = frame.in().size();
  plan.out = frame.out().data();
  plan.num_out = frame.out().size();
  plan.attrs = attrs.data();
  plan.num_attrs = attrs.size();
  plan.device_type = device.type();
  plan.device_id = device.id();
  plan.require = require;
  plan.workspace_align = 1;
  for (size_t i = 0; i < node.out.size(); ++i)
    if (node.out[i]->sink) plan.accumulate |= 1ull << i;
  return kernel->prepare(host, &plan);
}

bool strided(const Program& program, const Node& node) {
  return std::any_of(node.in.begin(), node.in.end(), [&](const Value* v) {
    return v && !is_contiguous(v->type, v->strides, program.dims());
  });
}

bool has_sink(const Node& node) {
  return std::any_of(node.out.begin(), node.out.end(), [](const Value* v) { return v->sink != nullptr; });
}

}  // namespace

class Binder {
 public:
  Binder(Program& program, const Registry& registry, const Device& device, const KernelPolicy& policy, Binding& out)
      : program_(program), registry_(registry), device_(device), policy_(policy), out_(out) {}

  void run() {
    std::vector<Node*> nodes = std::move(program_.nodes);
    program_.nodes.clear();
    for (Node* n : nodes) bind(n, 0);
  }

 private:
  struct Candidate {
    KernelRef ref;
    std::string chosen_by;
  };

  std::vector<Candidate> candidates(const Node& n, std::vector<BoundNode::Rejection>& rejected) {
    const std::vector<KernelRef> all = registry_.find_kernels(n.op->name(), device_.kernels_of());
    auto by_backend = [&](const std::string& backend, const std::string& why, std::vector<Candidate>& list, bool must) {
      for (const KernelRef& k : all)
        if (view_of(k.kernel->backend) == backend) return list.push_back({k, why});
      if (must) rejected.push_back({backend, "has no kernel for this op on device '" + device_.kernels_of() + "' (" + why + ")"});
    };
    std::vector<Candidate> list;
    const KernelPolicy::Rule* rule = nullptr;
    for (const KernelPolicy::Rule& r : policy_.rules) {
      if (r.op != n.op->name() || !glob_match(r.where, n.path)) continue;
      if (rule)
        fail(GESTALT_CONFIG_ERROR, "[kernels.rule] {} at '{}' is claimed twice, by {} and {}; make the patterns disjoint",
             r.op, n.path, rule->origin, r.origin);
      rule = &r;
    }
    if (rule) {
      by_backend(rule->backend, "rule " + rule->origin, list, true);
    } else if (auto pin = policy_.pins.find(n.op->name()); pin != policy_.pins.end()) {
      by_backend(pin->second, "pin", list, true);
    } else if (policy_.order.empty()) {
      for (const KernelRef& k : all) list.push_back({k, "load order"});
    } else {
      for (const std::string& b : policy_.order) by_backend(b, "order", list, false);
    }
    return list;
  }

  // `depth`: how many decompositions led to the node.
  void bind(Node* n, int depth) {
    if (n->is_view()) {
      program_.nodes.push_back(n);
      return;
    }
    BoundNode bound;
    bound.node = n;
    if (bind_collective(bound, depth)) return;
    const std::vector<Candidate> list = candidates(*n, bound.rejected);
    for (const Candidate& c : list)
      if (try_kernel(bound, c, depth)) return;
    if (n->op->decompose) {
      out_.notes_.push_back(fmt::format("{} at {}: no kernel, decomposed ({})", n->op->name(), n->path, reasons(bound)));
      for (Node* inner : decomposed_below(program_, *n, depth)) bind(inner, depth + 1);
      return;
    }
    fail(GESTALT_UNAVAILABLE, "[{} at {}] no kernel serves it on device '{}': {}", n->op->name(), n->path,
         device_.kernels_of(), reasons(bound));
  }

  std::string reasons(const BoundNode& bound) const {
    std::string s;
    for (const auto& r : bound.rejected) s += (s.empty() ? "" : "; ") + r.backend + ": " + r.reason;
    if (!s.empty()) return s;
    std::string order = join(policy_.order, ", ");
    return order.empty() ? "no loaded plugin has one; name one in [plugins] use"
                         : "none of the backends in [kernels] (" + order + ") has one";
  }

  // Collectives among several ranks are the communicator's.
  bool bind_collective(BoundNode& bound, int depth) {
    const CollectiveKernel made = collective_kernel(*bound.node, policy_.groups);
    if (!made.kernel) return false;
    bound.kernel = made.kernel;
    bound.host = policy_.groups->host();
    bound.plugin = policy_.groups->backend();
    bound.state = made.state;
    bound.chosen_by = "mesh";
    StateGuard guard{bound.kernel, bound.state};
    Node* n = bound.node;
    if (strided(program_, *n))
      for (Node* before : make_contiguous(*n)) bind(before, depth);
    std::vector<Value*> sinks;
    std::vector<Node*> after;
    if (has_sink(*n)) after = into_temporaries(*n, sinks);
    program_.nodes.push_back(n);
    out_.nodes_.push_back(bound);
    guard.state = nullptr;
    for (Node* a : after) bind(a, depth);
    return true;
  }

  // Tries the node as it is; then with its gradient outputs in temporaries that a cast adds.
  bool try_kernel(BoundNode& bound, const Candidate& c, int depth) {
    Node* n = bound.node;
    const gestalt_kernel* k = c.ref.kernel;
    const std::string backend(view_of(k->backend));
    if ((policy_.require & GESTALT_REQUIRE_DETERMINISTIC) && !(k->flags & GESTALT_KERNEL_DETERMINISTIC)) {
      bound.rejected.push_back({backend, "is not deterministic, and the run asks for it"});
      return false;
    }
    const std::vector<Value*> in = n->in;
    const size_t mark = program_.nodes.size();
    std::vector<Node*> before;
    if (!(k->flags & GESTALT_KERNEL_STRIDED) && strided(program_, *n)) before = make_contiguous(*n);

    std::string reason = "does not accumulate";
    for (const bool temporaries : {false, true}) {
      std::vector<Node*> after;
      std::vector<Value*> sinks;
      if (temporaries) {
        if (!has_sink(*n) || n->op->name() == "core.cast") break;  // the temporary of a cast would need a cast
        after = into_temporaries(*n, sinks);
      } else if (has_sink(*n) && !(k->flags & GESTALT_KERNEL_ACCUMULATES)) {
        continue;
      }
      gestalt_plan plan;
      gestalt_status* status = prepare(program_, *n, k, c.ref.host, device_, policy_.require, true, plan);
      if (!status) {
        StateGuard guard{k, plan.state};
        for (Node* b : before) bind(b, depth);
        bound.kernel = k;
        bound.host = c.ref.host;
        bound.plugin = std::string(c.ref.plugin);
        bound.state = plan.state;
        bound.workspace_bytes = plan.workspace_size;
        bound.workspace_align = std::max<uint64_t>(plan.workspace_align, 1);
        bound.chosen_by = c.chosen_by;
        program_.nodes.push_back(n);
        out_.nodes_.push_back(bound);
        guard.state = nullptr;
        for (Node* a : after) bind(a, depth);
        return true;
      }
      const Error e = take(status);
      if (temporaries) restore(*n, sinks);
      if (e.code() != GESTALT_UNSUPPORTED)
        throw Error(e.code(), fmt::format("[{} at {}] backend '{}' of plugin '{}': {}", n->op->name(), n->path, backend,
                                          c.ref.plugin, e.message()));
      reason = e.message();
    }
    bound.rejected.push_back({backend, reason});
    n->in = in;
    program_.nodes.resize(mark);
    return false;
  }

  // Destroys a state that no node has taken.
  struct StateGuard {
    const gestalt_kernel* kernel;
    void* state;
    ~StateGuard() {
      if (state && kernel->destroy) kernel->destroy(state);
    }
  };

  std::vector<Node*> make_contiguous(Node& n) {
    std::vector<Node*> made;
    Builder b(program_, {}, GESTALT_PHASE_TRAIN);
    b.target = &made;
    b.region = n.region;
    b.path = n.path;
    for (Value*& v : n.in)
      if (v && !is_contiguous(v->type, v->strides, program_.dims())) v = b.op("core.copy", {v});
    for (Node* m : made) m->stream = n.stream;
    return made;
  }

  // Gives each sunk output storage of its own (in the dtype that infer says) and records the cast into the sink.
  std::vector<Node*> into_temporaries(Node& n, std::vector<Value*>& sinks) {
    InferContext infer(*n.op, n.path, n.in, n.attrs, program_.dims());
    n.op->infer(infer);
    std::vector<Node*> made;
    Builder b(program_, {}, GESTALT_PHASE_TRAIN);
    b.target = &made;
    b.region = n.region;
    b.path = n.path;
    for (size_t i = 0; i < n.out.size(); ++i) {
      sinks.push_back(n.out[i]->sink);
      if (!n.out[i]->sink) continue;
      Value* to = std::exchange(n.out[i]->sink, nullptr);
      n.out[i]->type = infer.outputs[i];
      b.sink_by_cast(n.out[i], to);
    }
    for (Node* m : made) m->stream = n.stream;
    return made;
  }

  void restore(Node& n, const std::vector<Value*>& sinks) {
    for (size_t i = 0; i < sinks.size(); ++i) {
      n.out[i]->sink = sinks[i];
      if (sinks[i]) n.out[i]->type.dtype = sinks[i]->type.dtype;
    }
  }

  Program& program_;
  const Registry& registry_;
  const Device& device_;
  const KernelPolicy& policy_;
  Binding& out_;
};

// Delegating: from there on the destructor runs, also when an op finds no kernel.
Binding::Binding(Program& program, const Registry& registry, const Device& device, const KernelPolicy& policy) : Binding() {
  Binder(program, registry, device, policy, *this).run();
}

Binding::~Binding() {
  for (const BoundNode& b : nodes_)
    if (b.kernel->destroy && b.state) b.kernel->destroy(b.state);
}

std::string Binding::table() const {
  struct Row {
    size_t nodes = 0;
    std::set<std::string> reasons;
  };
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Row> rows;
  for (const BoundNode& b : nodes_) {
    Row& row = rows[{b.node->op->name(), std::string(view_of(b.kernel->backend)), b.plugin, b.chosen_by}];
    ++row.nodes;
    for (const auto& r : b.rejected) row.reasons.insert(r.backend + ": " + r.reason);
  }
  std::string out = fmt::format("{:<28} {:<16} {:<24} {:<20} {}\n", "op", "backend", "plugin", "chosen by", "nodes");
  for (const auto& [key, row] : rows) {
    out += fmt::format("{:<28} {:<16} {:<24} {:<20} {}\n", std::get<0>(key), std::get<1>(key), std::get<2>(key),
                       std::get<3>(key), row.nodes);
    for (const std::string& r : row.reasons) out += "    refused by " + r + "\n";
  }
  for (const std::string& n : notes_) out += n + "\n";
  return out;
}

void* prepare_kernel(const Program& program, const BoundNode& bound, const Device& device, uint64_t require, bool at_max,
                     uint64_t* workspace_bytes, uint64_t* workspace_align) {
  gestalt_plan plan;
  check(bound.host, prepare(program, *bound.node, bound.kernel, bound.host, device, require, at_max, plan),
        fmt::format("{} at {}", bound.node->op->name(), bound.node->path));
  *workspace_bytes = plan.workspace_size;
  *workspace_align = std::max<uint64_t>(plan.workspace_align, 1);
  return plan.state;
}

std::vector<std::string> unused_rules(const KernelPolicy& policy, const std::vector<const Program*>& programs) {
  std::vector<std::string> unused;
  auto any = [&](auto matches) {
    return std::any_of(programs.begin(), programs.end(), [&](const Program* p) {
      return std::any_of(p->nodes.begin(), p->nodes.end(), [&](const Node* n) { return matches(*n); });
    });
  };
  for (const auto& r : policy.rules)
    if (!any([&](const Node& n) { return n.op->name() == r.op && glob_match(r.where, n.path); }))
      unused.push_back(fmt::format("[kernels.rule] at {}: no op '{}' lies at '{}', so the rule has no effect", r.origin,
                                   r.op, r.where));
  for (const auto& pin : policy.pins)
    if (!any([&](const Node& n) { return n.op->name() == pin.first; }))
      unused.push_back(fmt::format("[kernels] pin '{}': no program uses the op, so the pin has no effect", pin.first));
  return unused;
}

}  // namespace gestalt::core
