// The plan of core.rotary: what a kernel of any device checks.
#pragma once

#include <string>

#include "gestalt/plan_checks.hpp"

namespace gestalt {

// Turns pair i of the first `dims` elements of each head by positions[t] theta^(-2i / dims) radians, or by row t of the
// table: dims/2 cosines, then dims/2 sines. A pair is (i, i + dims/2), or (2i, 2i + 1) where interleaved. inverse turns
// back: the gradient. The rest of a head is copied.
struct RotaryPlan {
  explicit RotaryPlan(const Plan& plan)
      : interleaved(plan.attrs().boolean("interleaved", false)),
        by_table(plan.has_in(2)),
        theta(plan.attrs().f64("theta", 1e4)),
        sense(plan.attrs().boolean("inverse", false) ? -1 : 1) {
    const View x = plan.in(0);
    need_float(plan, x, "x");
    need_ndim(plan, x, "x", 3);
    if (plan.has_in(1) == plan.has_in(2))
      throw InvalidArgument(place(plan) + "got " +
                            (plan.has_in(1) ? "positions and a table" : "no positions, no table") +
                            ", expected either");
    dims = plan.attrs().i64("dims", 0);
    if (plan.has_in(2)) {
      need_dtype(plan, plan.in(2), "table", {x.is(kF64) ? kF64 : kF32});
      need_ndim(plan, plan.in(2), "table", 2);
      need_dim(plan, plan.in(2), "table", 0, x.dim(0));
      dims = plan.in(2).dim(1);
    } else {
      need_index(plan, plan.in(1), "positions");
      need_ndim(plan, plan.in(1), "positions", 1);
      need_dim(plan, plan.in(1), "positions", 0, x.dim(0));
      if (dims == 0) dims = x.dim(2);
    }
    if (dims < 0 || dims % 2 != 0 || dims > x.dim(2))
      throw InvalidArgument(place(plan) + "dims: cannot be rotated in pairs, got " + std::to_string(dims) +
                            ", expected an even number up to " + std::to_string(x.dim(2)));
    if (!(theta > 0))
      throw InvalidArgument(place(plan) + "theta: got " + std::to_string(theta) + ", expected above 0");
  }

  bool interleaved, by_table;
  int64_t dims = 0;
  double theta;
  double sense;  // -1: back
};

}  // namespace gestalt
