#include "core/parallel/groups.h"

#include "core/base/host.h"

namespace gestalt::core {

Groups::Groups(const Instance& comm, const Mesh& mesh)
    : comm_(comm.table<gestalt_comm_1>()),
      self_(comm.self()),
      host_(comm.component().host),
      backend_(view_of(comm.component().component->name)) {
  for (const Mesh::Axis& axis : mesh.axes()) {
    if (axis.size == 1) continue;
    const std::vector<int64_t> ranks = mesh.ranks_along(axis.name);
    Group group{axis.size, axis.index, nullptr};
    check(host_, comm_->group_open(self_, ranks.data(), ranks.size(), &group.handle), comm.text());
    groups_.emplace(axis.name, group);
  }
}

Groups::~Groups() {
  for (auto& [axis, group] : groups_) comm_->group_close(self_, group.handle);
}

const Groups::Group* Groups::find(std::string_view axis) const {
  auto it = groups_.find(axis);
  return it == groups_.end() ? nullptr : &it->second;
}

}  // namespace gestalt::core
