#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/value.h"
#include "core/parallel/placement.h"
#include "gestalt/abi/module.h"

namespace gestalt::core {

// One logical parameter of the model, under the first name it was declared by.
struct Parameter {
  std::string path;  // "model.layers.0.mlp.up.weight"
  TensorType type;   // local shape and dtype
  std::vector<int64_t> global_shape;
  std::vector<int64_t> parts;  // along dimension 0; empty: one part
  std::vector<std::string> part_names;
  int64_t init = GESTALT_INIT_ZEROS;
  double init_a = 0, init_b = 0;
  Placement placement;
  std::string group;
  bool trainable = true;  // false: a buffer
};

struct StateDecl {
  std::string path;
  int64_t scope;
  TensorType type;  // without the token or sequence dimension
  int64_t shard_dim = -1;
  std::string shard_axis;
};

// A declared module instance. The tree is made once per model and read by every recording.
struct ModuleInstance {
  std::string path;  // "model.layers.0.attention"
  std::string slot;
  std::string component;
  const gestalt_module_1* table = nullptr;
  void* self = nullptr;
  const gestalt_host* host = nullptr;
  std::shared_ptr<void> owner;            // destroys `self`
  std::vector<Parameter*> params;         // by the id that declare returned
  std::vector<Parameter*> buffers;
  std::vector<StateDecl*> states;
  std::vector<std::unique_ptr<ModuleInstance>> children;
  std::vector<uint64_t> boundaries;       // children before which a pipeline stage may begin
};

}  // namespace gestalt::core
