#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/program/module_tree.h"
#include "core/program/program.h"

namespace gestalt::core {

// A named tensor of the batch: dtype and shape with named dimensions as handles.
struct BatchField {
  std::string name;
  TensorType type;
};

// How a program sees the state of generation: tokens in blocks, sequences in slots. 0 blocks: there is no state.
struct StateLayout {
  int64_t num_blocks = 0, block_tokens = 0, num_slots = 0;
  // [num_blocks, block_tokens, ...] of a state per token, [num_slots, ...] of one per sequence.
  TensorType type_of(const StateDecl& state) const;
};

// Records ops into a program: the host's side of "gestalt.build/1" and of the rules of ops. Region and path of what is
// recorded follow the module that is emitting.
class Builder final : public Recorder {
 public:
  Builder(Program& program, const std::vector<BatchField>& fields, int phase, const StateLayout& states = {});
  Builder(const Builder&) = delete;

  std::vector<Value*> apply(std::string_view op, const std::vector<Value*>& in, const Attrs& attrs) override;
  DimTable& dims() override { return program_.dims(); }
  gestalt_build* abi() override { return &abi_.build; }

  Program& program() { return program_; }
  int phase() const { return phase_; }
  Value* batch(std::string_view name, bool required);
  Value* param(const Parameter& p);
  Value* state(const StateDecl& s);  // NULL in programs without state
  // The path of a module that asked for seq_starts in a program with state, but keeps none: what it computes from other
  // tokens of a sequence would miss those of earlier passes. Empty: none did.
  const std::string& without_state() const { return without_state_; }
  // Emits a module with its own path; its inputs and outputs are values.
  std::vector<Value*> emit(const ModuleInstance& module, const std::vector<Value*>& in);
  const ModuleInstance* current() const { return modules_.empty() ? nullptr : modules_.back(); }
  void loss(const std::string& name, Value* sum, Value* weight);
  // Adds sum and weight into the f64 inputs "metric:NAME.sum" and "metric:NAME.weight".
  void metric(const std::string& name, Value* sum, Value* weight);
  // Writes or accumulates `v` into `target` (see Program): by the node that makes v if it can, else by a cast.
  void sink_by_cast(Value* v, Value* target);

  // Where nodes go and what they are marked with; passes redirect these.
  std::vector<Node*>* target;
  Region region = Region::kForward;
  std::string path;

  // The builder behind an ABI handle.
  static Builder& of(gestalt_build* b);

 private:
  struct Abi {
    gestalt_build build;
    Builder* self;
  };
  std::vector<Value*> apply_view(const OpDef& op, Value* x, const Attrs& attrs);

  Program& program_;
  std::map<std::string, TensorType, std::less<>> fields_;
  int phase_;
  StateLayout states_;
  std::string without_state_;
  Abi abi_;
  std::vector<const ModuleInstance*> modules_;
};

}  // namespace gestalt::core
