#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config.h"

namespace gestalt::core {

// The named axes over which ranks are arranged. The first axis varies fastest with the rank.
class Mesh {
 public:
  struct Axis {
    std::string name;
    int64_t size = 1;
    int64_t index = 0;  // this rank's place
  };

  Mesh() = default;
  // [mesh] of a run for `rank` of `world` processes. Sizes that do not multiply to the world are refused with the
  // numbers.
  Mesh(const Config& config, int64_t rank, int64_t world);

  const std::vector<Axis>& axes() const { return axes_; }
  // Size 1 for an axis that the mesh does not have.
  Axis axis(std::string_view name) const;
  // The ranks that differ from this one in their place along `name` only, by that place.
  std::vector<int64_t> ranks_along(std::string_view name) const;
  std::string text() const;  // "tp=1 cp=1 dp=1 pp=1"

 private:
  std::vector<Axis> axes_;
};

}  // namespace gestalt::core
