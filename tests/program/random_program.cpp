#include "tests/program/random_program.h"

#include "core/tensor/dtype.h"

namespace gestalt::core::test {

namespace {

int pick(std::mt19937& random, int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); }

// Bytes [begin, end) of the arena of a stream, or of an input.
struct Range {
  const void* memory;
  uint64_t begin, end;
  bool meets(const Range& o) const { return memory == o.memory && begin < o.end && o.begin < end; }
};

class Player {
 public:
  explicit Player(const Executable& e) : e_(e), plan_(e.plan()), nodes_(e.binding().nodes()), schedule_(e.schedule()) {}

  std::string run() {
    order();
    for (const Schedule::Item& item : schedule_.items)
      if (item.kind == Schedule::Kind::kNode)
        if (std::string wrong = node(item.node); !wrong.empty()) return wrong;
    for (const auto& [name, v] : e_.program().outputs) {
      const Value* root = const_cast<Value*>(v)->root();
      if (root->producer && !holds(*root)) return "output " + name + " was overwritten";
    }
    return "";
  }

 private:
  struct Access {
    Range range;
    uint32_t node;
    bool writes;
  };

  // before_[i]: what node i has waited for, by the nodes' own streams and events alone.
  void order() {
    const auto streams = static_cast<size_t>(schedule_.num_streams);
    std::vector<std::vector<bool>> now(streams, std::vector<bool>(nodes_.size()));
    std::vector<std::vector<bool>> events(schedule_.num_events);
    before_.resize(nodes_.size());
    for (const Schedule::Item& item : schedule_.items) {
      auto& mine = now[static_cast<size_t>(item.stream)];
      if (item.kind == Schedule::Kind::kRecord) {
        events[item.event] = mine;
      } else if (item.kind == Schedule::Kind::kWait) {
        for (size_t i = 0; i < events[item.event].size(); ++i) mine[i] = mine[i] || events[item.event][i];
      } else {
        before_[item.node] = mine;
        mine[item.node] = true;
      }
    }
  }

  Range range(const Value& root) const {
    auto it = plan_.places.find(&root);
    if (it == plan_.places.end()) return {&root, 0, e_.program().max_bytes(&root)};
    return {arena(it->second.stream), it->second.offset, it->second.offset + e_.program().max_bytes(&root)};
  }
  const void* arena(int stream) const { return &plan_.arena_bytes[static_cast<size_t>(stream)]; }

  bool holds(const Value& root) const {
    const Range r = range(root);
    if (r.begin == r.end) return true;
    for (auto it = accesses_.rbegin(); it != accesses_.rend(); ++it)
      if (it->writes && it->range.meets(r)) return nodes_[it->node].node == root.producer;
    return false;
  }

  std::string node(uint32_t index) {
    const BoundNode& b = nodes_[index];
    const std::string me = fmt::format("node {} ({})", index, b.node->op->name());
    std::vector<Access> mine;
    for (Value* v : b.node->in) {
      if (!v) continue;
      const Value& root = *v->root();
      if (root.producer && !holds(root)) return me + " reads an input that was overwritten";
      mine.push_back({range(root), index, false});
    }
    std::vector<Range> written;
    for (Value* v : b.node->out) {
      const Range r = range(v->sink ? *v->sink : *v);
      if (r.memory != (v->sink ? static_cast<const void*>(v->sink) : v) && r.end > arena_end(b.node->stream))
        return me + " writes beyond its arena";
      for (size_t i = 0; i < b.node->in.size(); ++i) {
        const Value* x = b.node->in[i];
        if (!x || !range(*const_cast<Value*>(x)->root()).meets(r)) continue;
        if (b.node->op->schema.output(v->output).inplace != i || x->base) return me + " overwrites an input it reads";
      }
      for (const Range& other : written)
        if (other.meets(r)) return me + " has outputs that overlap";
      written.push_back(r);
      mine.push_back({r, index, true});
    }
    if (const MemoryPlan::Place& w = plan_.workspaces[index]; w.bytes) {
      const Range r{arena(w.stream), w.offset, w.offset + w.bytes};
      if (w.stream != b.node->stream || w.bytes < b.workspace_bytes) return me + " has a wrong workspace";
      for (const Access& a : mine)
        if (a.range.meets(r)) return me + " has a workspace over its own tensors";
      mine.push_back({r, index, true});
    }
    for (const Access& a : mine)
      for (const Access& old : accesses_)
        if (old.node != index && (a.writes || old.writes) && a.range.meets(old.range) && !before_[index][old.node])
          return fmt::format("{} does not wait for node {}, which touches the same memory", me, old.node);
    accesses_.insert(accesses_.end(), mine.begin(), mine.end());
    return "";
  }

  uint64_t arena_end(int stream) const { return plan_.arena_bytes[static_cast<size_t>(stream)]; }

  const Executable& e_;
  const MemoryPlan& plan_;
  const std::vector<BoundNode>& nodes_;
  const Schedule& schedule_;
  std::vector<std::vector<bool>> before_;
  std::vector<Access> accesses_;
};

}  // namespace

std::vector<FakeKernel> kernels_with_workspaces(std::mt19937& random) {
  std::vector<FakeKernel> all = core_kernels();
  for (FakeKernel& k : all) {
    k.workspace = pick(random, 2) ? static_cast<uint64_t>(pick(random, 1000)) : 0;
    k.workspace_align = 1ull << pick(random, 9);
    if (k.op != "core.copy" && k.op != "core.cast" && pick(random, 3) == 0) k.flags &= ~uint64_t{GESTALT_KERNEL_STRIDED};
  }
  return all;
}

void record_random(Recording& r, std::mt19937& random, int nodes, int num_streams) {
  std::vector<Value*> values;
  for (int i = 0; i < 3; ++i) values.push_back(r.input("x" + std::to_string(i), {8, 6}));
  auto any = [&] { return values[values.size() - 1 - static_cast<size_t>(pick(random, std::min<int>(8, static_cast<int>(values.size()))))]; };
  auto matrix = [&](Value* v) {  // [8, 6] again, whatever v is
    if (v->type.dim(0) == 6) v = r.op("core.transpose", {v}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}});
    return v;
  };
  for (int i = 0; i < nodes; ++i) {
    Value* x = any();
    switch (pick(random, 9)) {
      case 0: values.push_back(r.op("core.add", {matrix(x), matrix(any())})); break;
      case 1: values.push_back(r.op("core.mul", {matrix(x), matrix(any())})); break;
      case 2: values.push_back(r.op("core.neg", {x})); break;
      case 3: values.push_back(r.op("core.scale", {x}, {{"factor", 0.5}})); break;
      case 4: values.push_back(r.op("core.transpose", {x}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}})); break;
      case 5: values.push_back(r.op("core.relu", {x})); break;
      case 6: {
        const auto parts = r.ops_of("core.split_parts", {matrix(x)}, {{"parts", std::vector<int64_t>{2, 4}}});
        values.push_back(r.op("core.concat", {parts[1], parts[0]}, {{"dim", int64_t{1}}}));
        break;
      }
      case 7: {
        TensorType t(GESTALT_F64, {8, 6});
        r.b->sink_by_cast(matrix(x), r.program->input("grad:" + std::to_string(pick(random, 3)), t));
        break;
      }
      default:
        values.push_back(r.op("core.sub", {x, r.op("core.scale", {x}, {{"factor", 2.0}})}));
    }
  }
  for (int i = 0; i < 3; ++i) r.program->outputs["y" + std::to_string(i)] = any();
  for (Node* n : r.program->nodes) n->stream = pick(random, num_streams);
  r.compile();
}

std::string play(const Executable& e) { return Player(e).run(); }

}  // namespace gestalt::core::test
