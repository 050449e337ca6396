#include "core/program/memory_plan.h"

#include <algorithm>

namespace gestalt::core {

namespace {

// A block is alive from node `birth` to node `death`, both included, in the order of issue.
struct Block {
  uint64_t bytes = 0;
  int stream = 0;
  int64_t birth = 0, death = 0;
  uint64_t offset = 0;
};

class Planner {
 public:
  Planner(const Program& program, const Binding& binding, const Schedule& schedule, uint64_t alignment)
      : program_(program), nodes_(binding.nodes()), schedule_(schedule), alignment_(alignment) {}

  MemoryPlan run() {
    collect();
    overlay();
    MemoryPlan plan;
    plan.arena_bytes.assign(static_cast<size_t>(schedule_.num_streams), 0);
    plan.workspaces.resize(nodes_.size());
    std::vector<Block*> blocks;
    for (Block& b : blocks_) {
      plan.sum_bytes += b.bytes;
      if (b.bytes > 0) blocks.push_back(&b);
    }
    place(blocks, plan.arena_bytes);
    for (const auto& [root, index] : block_of_) {
      const Block& b = blocks_[index];
      plan.places[root] = {b.stream, b.offset, b.bytes};
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (workspace_[i] < 0) continue;
      const Block& b = blocks_[static_cast<size_t>(workspace_[i])];
      plan.workspaces[i] = {b.stream, b.offset, b.bytes};
    }
    plan.num_overlays = overlays_;
    return plan;
  }

 private:
  uint64_t round(uint64_t bytes, uint64_t align) const {
    align = std::max(align, alignment_);
    return (bytes + align - 1) / align * align;
  }

  void collect() {
    users_.reserve(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Node& n = *nodes_[i].node;
      for (Value* v : n.out) {
        if (v->sink) continue;
        block_of_[v] = blocks_.size();
        blocks_.push_back({round(program_.max_bytes(v), 1), n.stream, static_cast<int64_t>(i), 0, 0});
        users_[v].push_back(i);
      }
      for (Value* v : n.in)
        if (v && block_of_.contains(v->root())) users_[v->root()].push_back(i);
      workspace_.push_back(-1);
      if (nodes_[i].workspace_bytes > 0) {
        // Room to align the start when the kernel asks for more than the device's alignment.
        const uint64_t slack = nodes_[i].workspace_align > alignment_ ? nodes_[i].workspace_align : 0;
        workspace_.back() = static_cast<int64_t>(blocks_.size());
        blocks_.push_back({round(nodes_[i].workspace_bytes + slack, 1), n.stream, static_cast<int64_t>(i),
                           static_cast<int64_t>(i), 0});
      }
    }
    for (const auto& [name, v] : program_.outputs) kept_.push_back(v->root());
    for (auto& [root, index] : block_of_) blocks_[index].death = death_of(root, blocks_[index].stream);
  }

  bool kept(const Value* root) const { return std::find(kept_.begin(), kept_.end(), root) != kept_.end(); }

  // The last node of the issue order during which the block must stay: a user on another stream holds it until the
  // block's own stream has waited for that user.
  int64_t death_of(const Value* root, int stream) const {
    if (kept(root)) return INT64_MAX;
    int64_t death = 0;
    for (size_t user : users_.at(root)) {
      const int other = nodes_[user].node->stream;
      if (other == stream) {
        death = std::max(death, static_cast<int64_t>(user));
        continue;
      }
      int64_t seen = INT64_MAX;
      for (size_t i = user + 1; i < nodes_.size(); ++i) {
        if (nodes_[i].node->stream != stream) continue;
        if (schedule_.clocks[i][static_cast<size_t>(other)] > user) {
          seen = static_cast<int64_t>(i) - 1;
          break;
        }
      }
      death = std::max(death, seen);
    }
    return death;
  }

  // True when a node of another stream touches the value and node i has not waited for it: death only says that the next
  // node has.
  bool read_elsewhere(const Value* root, size_t i) const {
    const std::vector<size_t>& users = users_.at(root);
    return std::any_of(users.begin(), users.end(), [&](size_t user) {
      const int other = nodes_[user].node->stream;
      return other != nodes_[i].node->stream && schedule_.clocks[i][static_cast<size_t>(other)] <= user;
    });
  }

  // An output marked !inplace(x) takes x's block when x dies here, fills its whole storage, and nobody else in this node
  // reads that storage.
  void overlay() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Node& n = *nodes_[i].node;
      for (Value* y : n.out) {
        const auto& mark = n.op->schema.output(y->output).inplace;
        if (!mark || y->sink || *mark >= n.in.size() || !n.in[*mark]) continue;
        Value* x = n.in[*mark];
        auto bx = block_of_.find(x->root());
        if (bx == block_of_.end() || x->base || x->sink || kept(x) || x->type.dtype != y->type.dtype) continue;
        Block &from = blocks_[bx->second], &to = blocks_[block_of_.at(y)];
        if (&from == &to || from.bytes != to.bytes || from.stream != n.stream || from.death != static_cast<int64_t>(i) ||
            read_elsewhere(x->root(), i))
          continue;
        bool alone = true;
        for (size_t k = 0; k < n.in.size(); ++k)
          alone &= k == *mark || !n.in[k] || block_of_.find(n.in[k]->root()) == block_of_.end() ||
                   block_of_.at(n.in[k]->root()) != bx->second;
        for (Value* other : n.out) alone &= other == y || other->sink || block_of_.at(other) != bx->second;
        if (!alone) continue;
        from.death = to.death;
        to.bytes = 0;
        block_of_[y] = bx->second;
        ++overlays_;
      }
    }
  }

  // Largest first, each at the lowest offset that is free during its life.
  void place(std::vector<Block*>& blocks, std::vector<uint64_t>& arenas) {
    std::stable_sort(blocks.begin(), blocks.end(), [](const Block* a, const Block* b) { return a->bytes > b->bytes; });
    std::vector<std::vector<Block*>> placed(arenas.size());
    std::vector<std::pair<uint64_t, uint64_t>> busy;
    for (Block* b : blocks) {
      auto& arena = placed[static_cast<size_t>(b->stream)];
      busy.clear();
      for (const Block* o : arena)
        if (b->birth <= o->death && o->birth <= b->death) busy.emplace_back(o->offset, o->offset + o->bytes);
      std::sort(busy.begin(), busy.end());
      uint64_t at = 0;
      for (const auto& [begin, end] : busy) {
        if (begin >= at + b->bytes) break;
        at = std::max(at, end);
      }
      b->offset = at;
      arena.push_back(b);
      uint64_t& size = arenas[static_cast<size_t>(b->stream)];
      size = std::max(size, at + b->bytes);
    }
  }

  const Program& program_;
  const std::vector<BoundNode>& nodes_;
  const Schedule& schedule_;
  uint64_t alignment_;
  std::vector<Block> blocks_;
  std::unordered_map<const Value*, size_t> block_of_;
  std::unordered_map<const Value*, std::vector<size_t>> users_;
  std::vector<int64_t> workspace_;
  std::vector<const Value*> kept_;
  uint64_t overlays_ = 0;
};

}  // namespace

MemoryPlan plan_memory(const Program& program, const Binding& binding, const Schedule& schedule, uint64_t alignment) {
  return Planner(program, binding, schedule, alignment).run();
}

}  // namespace gestalt::core
