#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/parallel/mesh.h"

namespace gestalt::core {

// The one record of where a parameter's elements live. Gradient reduction, norm, optimizer sharding and checkpoints read
// this and nothing else.
struct Placement {
  int64_t dim = -1;  // the dimension that is cut; -1: replicated
  std::string axis;  // the mesh axis it is cut over
  int64_t unit = 1;  // pieces are multiples of this
  bool sharded(const Mesh& mesh) const { return dim >= 0 && mesh.axis(axis).size > 1; }
};

// A run of a logical tensor's dimension `dim` that this rank holds: [begin, begin + size).
struct Piece {
  int64_t begin, size;
};

// What a rank holds along the cut dimension: one piece a part. `parts`: sizes of the fused parts (one entry for a plain
// tensor). A part that does not divide into multiples of the unit is refused with the numbers.
std::vector<Piece> local_pieces(const Placement& placement, const std::vector<int64_t>& parts, const Mesh& mesh,
                                std::string_view name);

// The shape of the local tensor.
std::vector<int64_t> local_shape(const Placement& placement, const std::vector<int64_t>& global,
                                 const std::vector<int64_t>& parts, const Mesh& mesh, std::string_view name);

}  // namespace gestalt::core
