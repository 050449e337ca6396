// The plan of weight updates: what a kernel of any device checks.
#pragma once

#include <string_view>

#include "gestalt/plan_checks.hpp"

// Flat vectors, cut by a table of segments with their own weight decay and learning rate.
namespace gestalt::flat_update {

inline constexpr uint64_t kParam = 0, kMaster = 1, kGrad = 2;

inline void need_vector(const Plan& plan, uint64_t i, std::string_view name, View param) {
  need_like(plan, plan.in(i), name, param);
  need_ndim(plan, plan.in(i), name, 1);
  need_dim(plan, plan.in(i), name, 0, param.dim(0));
}

inline void need_update(const Plan& plan, uint64_t segments) {
  need_float(plan, plan.in(kParam), "param");
  need_ndim(plan, plan.in(kParam), "param", 1);
  if (plan.has_in(kMaster)) need_vector(plan, kMaster, "master", plan.in(kParam));
  need_vector(plan, kGrad, "grad", plan.in(kParam));
  const View table = plan.in(segments), hyper = plan.in(segments + 1);
  need_index(plan, table, "segments");
  need_ndim(plan, table, "segments", 2);
  need_dim(plan, table, "segments", 1, 2);
  need_float(plan, hyper, "segment_hyper");
  need_ndim(plan, hyper, "segment_hyper", 2);
  need_dim(plan, hyper, "segment_hyper", 0, table.dim(0));
  need_dim(plan, hyper, "segment_hyper", 1, 2);
  need_float(plan, plan.in(segments + 2), "scalars");
  need_ndim(plan, plan.in(segments + 2), "scalars", 1);
  need_float(plan, plan.in(segments + 3), "clip");
  need_ndim(plan, plan.in(segments + 3), "clip", 0);
}

}  // namespace gestalt::flat_update
