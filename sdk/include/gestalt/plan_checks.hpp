// What a kernel's constructor checks about its plan. A dtype that a kernel does not serve is Unsupported (the host tries
// the next backend); a shape that contradicts the op is InvalidArgument (the run stops).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "gestalt/kernel.hpp"

namespace gestalt {

inline std::string place(const Plan& plan) { return "[" + std::string(plan.op()) + "] "; }

inline void need_dtype(const Plan& plan, View view, std::string_view name, std::initializer_list<DType> allowed) {
  for (DType dtype : allowed)
    if (view.dtype() == dtype) return;
  std::string list;
  for (DType dtype : allowed) list += (list.empty() ? "" : ", ") + std::string(name_of(dtype));
  throw Unsupported(place(plan) + std::string(name) + ": dtype not supported, got " + describe(view) + ", expected " +
                    list);
}

inline void need_float(const Plan& plan, View view, std::string_view name) {
  need_dtype(plan, view, name, {kF32, kF64, kBF16, kF16});
}

inline void need_index(const Plan& plan, View view, std::string_view name) {
  need_dtype(plan, view, name, {kI32, kI64});
}

// A tensor whose elements share the compute type of a reference tensor: an f64 op is f64 throughout.
inline void need_like(const Plan& plan, View view, std::string_view name, View reference) {
  need_float(plan, view, name);
  if (view.is(kF64) != reference.is(kF64))
    throw Unsupported(place(plan) + std::string(name) + ": f64 mixed with other types, got " + describe(view) +
                      " and " + describe(reference) + ", expected all or none f64");
}

inline void need_ndim(const Plan& plan, View view, std::string_view name, int ndim) {
  if (view.ndim() != ndim)
    throw InvalidArgument(place(plan) + std::string(name) + ": wrong number of dimensions, got " + describe(view) +
                          ", expected " + std::to_string(ndim));
}

inline void need_dim(const Plan& plan, View view, std::string_view name, int dim, int64_t size) {
  if (view.dim(dim) != size)
    throw InvalidArgument(place(plan) + std::string(name) + ": wrong size of dimension " + std::to_string(dim) +
                          ", got " + describe(view) + ", expected " + std::to_string(size));
}

inline void need_same_shape(const Plan& plan, View view, std::string_view name, View other) {
  if (!same_shape(view, other))
    throw InvalidArgument(place(plan) + std::string(name) + ": shapes differ, got " + describe(view) + ", expected " +
                          describe(other));
}

}  // namespace gestalt
