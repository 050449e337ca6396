#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/op.h"

namespace gestalt::core {

enum class Region { kForward, kBackward, kRecompute, kUpdate };
const char* region_name(Region region);

// One recorded op. View ops are nodes too (gradients pass through them), but nothing runs for them.
struct Node {
  uint32_t id = 0;
  const OpDef* op = nullptr;
  std::vector<Value*> in;  // NULL: absent optional input
  std::vector<Value*> out;
  Attrs attrs;
  std::string path;  // of the module that recorded it
  Region region = Region::kForward;
  int stream = 0;
  bool is_view() const { return static_cast<bool>(op->view); }
};

// A recorded program: nodes in order over symbolic values. Passes rewrite `nodes`; nothing here needs a device.
//
// Inputs are values without a producer whose storage comes from outside, by name: "param:PATH", "grad:PATH",
// "batch:FIELD", "step_scalars", "flat:NAME", "metric:NAME". A value with a `sink` is written into (first micro-batch) or
// added to (later ones) that input instead of having storage of its own.
class Program {
 public:
  Program(const OpRegistry& ops, DimTable& dims) : ops_(&ops), dims_(&dims) {}
  Program(const Program&) = delete;

  const OpRegistry& ops() const { return *ops_; }
  DimTable& dims() const { return *dims_; }

  Value* new_value(const TensorType& type);
  // The input `name`; made on first use, an error if it was made with another type.
  Value* input(const std::string& name, const TensorType& type);
  Value* find_input(const std::string& name) const;
  const std::map<std::string, Value*>& inputs() const { return inputs_; }
  Node* new_node(const OpDef& op);  // not yet part of `nodes`

  std::vector<Node*> nodes;

  // Ranks along the axes of the mesh; an axis that is not here has one.
  std::map<std::string, int64_t, std::less<>> axis_sizes;

  // Kept alive to the end of a run, readable by name: "logits".
  std::map<std::string, Value*> outputs;
  struct Loss {
    std::string name;
    Value* sum;
    Value* weight;
  };
  std::vector<Loss> losses;

  // One line a node; two recordings of one program have equal texts.
  std::string text() const;
  std::string value_text(const Value* v) const;
  uint64_t max_bytes(const Value* v) const;  // of a root with named dimensions at their maximum

 private:
  const OpRegistry* ops_;
  DimTable* dims_;
  std::deque<Value> values_;
  std::deque<Node> node_storage_;
  std::map<std::string, Value*> inputs_;
};

// Number of nodes (views included) that read each value, by id; outputs count as a reader.
std::vector<uint32_t> count_uses(const Program& program);

}  // namespace gestalt::core
