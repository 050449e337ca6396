#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/config/schema.h"
#include "core/parallel/mesh.h"
#include "core/plugin/registry.h"
#include "core/program/bind.h"
#include "core/session/compiled.h"
#include "core/session/model_source.h"
#include "gestalt/abi/comm.h"

namespace gestalt::core {

// What the command line says about a run.
struct RunOptions {
  std::filesystem::path target;  // a run file, a checkpoint folder or another program's model (told apart by content)
  std::vector<std::string> sets;
  std::vector<std::string> environment;
  bool uses_data = true;  // false: the data, optimizer, train and metrics sections are not looked at
  std::string defaults;   // of the task: TOML that completes the configuration
};

// Whether a path holds something that Run opens; else it is a folder or file of another kind.
bool is_run(const std::filesystem::path& target);

// A configured run: the checked configuration, the loaded plugins and what they define. Nothing is created yet.
class Run {
 public:
  explicit Run(const RunOptions& options);
  // No run file: only the plugin `id` is loaded. For tasks that take none.
  explicit Run(const std::string& id);
  Run(const Run&) = delete;

  const Config& config() const { return config_; }
  const Registry& registry() const { return registry_; }
  Registry& registry() { return registry_; }
  const OpRegistry& ops() const { return ops_; }
  // The checkpoint folder that the command line named; empty if it named a run file.
  const std::filesystem::path& checkpoint() const { return checkpoint_; }
  // The other program's model that the command line named; NULL if it named something else.
  const ForeignModel* foreign() const { return foreign_.get(); }
  uint32_t dtype() const { return dtype_; }
  uint64_t seed() const { return seed_; }
  std::filesystem::path output() const;
  KernelPolicy kernel_policy(const std::string& kernels_of) const;
  RecomputePolicy recompute_policy() const;
  // After the last use: what plugins made, then the plugins.
  void shutdown() {
    foreign_.reset();
    registry_.shutdown();
  }
  // Fixes train.steps where the run file leaves it open; checkpoints then carry it.
  void set_steps(int64_t steps);

 private:
  Config config_;
  std::filesystem::path checkpoint_;
  Registry registry_;
  std::unique_ptr<ForeignModel> foreign_;
  OpRegistry ops_;
  uint32_t dtype_ = 0;
  uint64_t seed_ = 0;
};

// The devices, streams and arenas of a run.
class Machine {
 public:
  explicit Machine(const Run& run);
  Machine(const Machine&) = delete;

  Device& device() { return *device_; }
  const Mesh& mesh() const { return mesh_; }
  const std::vector<Stream>& streams() const { return streams_; }
  ArenaSet& arenas() { return *arenas_; }
  const KernelPolicy& policy() const { return policy_; }

 private:
  Instance comm_;
  Mesh mesh_;
  std::unique_ptr<Device> device_;
  KernelPolicy policy_;
  std::vector<Stream> streams_;
  std::unique_ptr<ArenaSet> arenas_;
};

// Publishes the process's interfaces ("gestalt.parallel/1"); once, before plugins load.
void publish_interfaces();

}  // namespace gestalt::core
