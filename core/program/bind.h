#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/parallel/groups.h"
#include "core/plugin/registry.h"
#include "core/program/program.h"
#include "core/runtime/device.h"

namespace gestalt::core {

// What [kernels] says for one device.
struct KernelPolicy {
  struct Rule {
    std::string where, op, backend;
    std::string origin;  // "configs/x.toml:12"
  };
  std::vector<std::string> order;           // backends by preference; empty: every loaded one, in load order
  std::map<std::string, std::string> pins;  // op -> backend
  std::vector<Rule> rules;                  // module path pattern and op -> backend
  uint64_t require = 0;                     // GESTALT_REQUIRE_ bits
  const Groups* groups = nullptr;           // of the mesh; NULL: one rank
};

// The kernel that serves one node.
struct BoundNode {
  struct Rejection {
    std::string backend, reason;
  };
  Node* node = nullptr;
  const gestalt_kernel* kernel = nullptr;
  const gestalt_host* host = nullptr;
  std::string plugin;
  void* state = nullptr;
  uint64_t workspace_bytes = 0, workspace_align = 1;
  std::string chosen_by;  // "rule configs/x.toml:12", "pin", "order"
  std::vector<Rejection> rejected;
};

// Pass 7: kernel binding. Every node that does work gets a kernel, once; the program is completed on the way with copies
// for kernels that take no strides, a temporary and an add for kernels that do not accumulate, and decompositions for ops
// that nobody serves. Owns the kernels' states.
class Binding {
 public:
  Binding(Program& program, const Registry& registry, const Device& device, const KernelPolicy& policy);
  ~Binding();
  Binding(Binding&& other) noexcept : nodes_(std::exchange(other.nodes_, {})), notes_(std::move(other.notes_)) {}

  const std::vector<BoundNode>& nodes() const { return nodes_; }
  // "op  backend  plugin  chosen by  nodes" with the reasons of refusals; and what was decomposed.
  std::string table() const;
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  friend class Binder;
  Binding() = default;
  std::vector<BoundNode> nodes_;
  std::vector<std::string> notes_;
};

// Prepares a kernel again for other sizes (kernels without ANY_SHAPE): the values of named dimensions as set now, or
// their maxima. Throws what prepare reports.
void* prepare_kernel(const Program& program, const BoundNode& bound, const Device& device, uint64_t require, bool at_max,
                     uint64_t* workspace_bytes, uint64_t* workspace_align);

// Rules that matched no op of any program: settings without effect. `programs` are all programs of the run.
std::vector<std::string> unused_rules(const KernelPolicy& policy, const std::vector<const Program*>& programs);

}  // namespace gestalt::core
