#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/parallel/mesh.h"
#include "core/plugin/registry.h"
#include "gestalt/abi/comm.h"

namespace gestalt::core {

// The groups of ranks that collectives run in: one for each axis of the mesh that has more than one rank.
class Groups {
 public:
  struct Group {
    int64_t size = 1, index = 0;  // this rank's place
    void* handle = nullptr;
  };

  // `comm` outlives the groups. Every rank of the world makes its groups at the same time.
  Groups(const Instance& comm, const Mesh& mesh);
  Groups(const Groups&) = delete;
  ~Groups();

  // NULL for an axis of one rank.
  const Group* find(std::string_view axis) const;
  const std::map<std::string, Group, std::less<>>& all() const { return groups_; }
  const gestalt_comm_1& comm() const { return *comm_; }
  void* self() const { return self_; }
  const gestalt_host* host() const { return host_; }
  const std::string& backend() const { return backend_; }  // "gestalt.mpi"

 private:
  const gestalt_comm_1* comm_;
  void* self_;
  const gestalt_host* host_;
  std::string backend_;
  std::map<std::string, Group, std::less<>> groups_;
};

}  // namespace gestalt::core
