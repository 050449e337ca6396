#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>

#include "core/config/schema.h"
#include "core/plugin/registry.h"
#include "core/program/module_tree.h"

namespace gestalt::core {

// The declared model of a run: every module instance under "model", their parameters, buffers and state. Made once from
// [model]; needs no device.
class ModelTree {
 public:
  // Components for slots come from [model.slots]: a key is a slot name ("mlp"), slots one below the other
  // ("sliding/attention") or a path pattern below the model ("layers.[0-3].mlp"); a value is a component name or a table
  // with `type` and keys of that component. A slot that no module has is an error.
  ModelTree(const Registry& registry, const Config& config, const Mesh& mesh, uint32_t dtype);
  ModelTree(const ModelTree&) = delete;

  const ModuleInstance& root() const { return *root_; }
  std::vector<const Parameter*> parameters() const;  // in order of declaration, buffers included
  const Parameter* find(std::string_view path) const;
  const std::deque<StateDecl>& states() const { return states_; }
  int64_t num_parameters() const;  // trainable elements of the logical tensors
  std::string text() const;        // the tree with components, for `explain`

 private:
  friend class Declaration;
  struct Slot {
    std::string component;
    const ConfigNode* config = nullptr;  // the table of the slot, or NULL
    std::string origin;
  };
  Slot slot_for(const std::string& path, const std::string& slot, const std::string& default_component);
  std::unique_ptr<ModuleInstance> make(const std::string& path, const std::string& slot, const Slot& chosen,
                                       const ConfigNode& config, const Mesh& mesh);

  const Registry& registry_;
  const Config& config_;
  const Mesh& mesh_;
  uint32_t dtype_;
  std::deque<Parameter> parameters_;
  std::deque<StateDecl> states_;
  std::set<std::string> used_slots_;
  std::vector<std::string> slots_above_;  // of the module that is declaring, from the root on
  std::unique_ptr<ModuleInstance> root_;
};

}  // namespace gestalt::core
