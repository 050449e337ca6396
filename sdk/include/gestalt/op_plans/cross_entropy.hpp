// The plan of core.cross_entropy and its parts: what a kernel of any device checks.
#pragma once

#include <string>

#include "gestalt/plan_checks.hpp"

// Logits may be a part of all classes: columns [first, first + n) of `classes`, as a rank holds them whose output table is
// cut.
namespace gestalt {

struct ClassRange {
  int64_t first, classes;
};

inline ClassRange class_range(const Plan& plan) {
  return {plan.attrs().i64("first", 0), plan.attrs().i64("classes", plan.in(0).dim(1))};
}

inline void need_cross_entropy(const Plan& plan) {
  const View logits = plan.in(0), labels = plan.in(1), weights = plan.in(2);
  need_float(plan, logits, "logits");
  need_ndim(plan, logits, "logits", 2);
  need_index(plan, labels, "labels");
  need_ndim(plan, labels, "labels", 1);
  need_dim(plan, labels, "labels", 0, logits.dim(0));
  need_dtype(plan, weights, "weights", {kF32, kF64});
  need_ndim(plan, weights, "weights", 1);
  need_dim(plan, weights, "weights", 0, logits.dim(0));
}

inline double smoothing_of(const Plan& plan) {
  const double s = plan.attrs().f64("label_smoothing", 0);
  if (!(s >= 0 && s < 1))
    throw InvalidArgument(place(plan) + "label_smoothing: got " + std::to_string(s) + ", expected 0 up to below 1");
  return s;
}

}  // namespace gestalt
