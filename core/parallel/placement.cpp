#include "core/parallel/placement.h"

namespace gestalt::core {

std::vector<Piece> local_pieces(const Placement& placement, const std::vector<int64_t>& parts, const Mesh& mesh,
                                std::string_view name) {
  std::vector<Piece> pieces;
  const Mesh::Axis axis = placement.dim >= 0 ? mesh.axis(placement.axis) : Mesh::Axis{};
  int64_t at = 0;
  for (int64_t part : parts) {
    if (part % (axis.size * placement.unit) != 0)
      fail(GESTALT_CONFIG_ERROR, "[{}] a part of {} cannot be cut over {} = {} in units of {}, expected a multiple of {}",
           name, part, placement.axis, axis.size, placement.unit, axis.size * placement.unit);
    const int64_t size = part / axis.size;
    pieces.push_back({at + axis.index * size, size});
    at += part;
  }
  return pieces;
}

std::vector<int64_t> local_shape(const Placement& placement, const std::vector<int64_t>& global,
                                 const std::vector<int64_t>& parts, const Mesh& mesh, std::string_view name) {
  std::vector<int64_t> shape = global;
  if (!placement.sharded(mesh)) return shape;
  const auto dim = static_cast<size_t>(placement.dim);
  int64_t size = 0;
  for (const Piece& p : local_pieces(placement, placement.dim == 0 && !parts.empty() ? parts : std::vector{global[dim]},
                                     mesh, name))
    size += p.size;
  shape[dim] = size;
  return shape;
}

}  // namespace gestalt::core
