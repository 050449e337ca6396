#pragma once

#include <set>
#include <string>

#include "tests/harness/environment.h"

// One file a check.
namespace gestalt::harness {

struct CheckContext {
  const Environment& e;
  const Description& d;
  const core::OpDef& op;
  std::string backend;  // only this one; empty: every
  Report& report;
  uint64_t seed;
  bool small;  // without the large cases, for checkers that slow everything down

  std::vector<core::KernelRef> kernels() const;
  // "core.add gestalt.cpu bf16 'broadcast b'": begins the report's entry.
  void begin(std::string_view check, const std::string& backend_name, uint32_t dtype, const Case& c,
             std::string_view detail = {}) const;
};

// Against the reference in every layout; guards, determinism, threads, accumulation, overlay, sizes below the plan.
void check_kernels(const CheckContext& c);
// View ops: through programs, contiguous and not, every dtype.
void check_views(const CheckContext& c);
// Ops without kernels: through programs, as the ops they are made of.
void check_decomposed(const CheckContext& c);
// The gradient rule against central differences of the reference.
void check_gradient(const CheckContext& c);
// Recorded programs on `cpu` and on `sim`, with capture and replay: the bits of the direct call.
void check_programs(const CheckContext& c);
// Wrong dtypes, ranks, attributes and values: an error with a message.
void check_bad_inputs(const CheckContext& c);

// Ops, kernels and descriptions belong together, without exception.
void check_complete(const Environment& e, Report& report);

void print_speed(const CheckContext& c);
// Of the ops named, or all that have a large case: needs a device whose memory the host does not see.
void print_large_speeds(const Environment& e, const std::set<std::string>& only);

// docs/ops.md.
std::string support_matrix(const Environment& e);

// Whether the kernel takes the description's first case in this dtype; the reason if not.
bool accepts(const Environment& e, const core::KernelRef& kernel, const core::OpDef& op, const Case& c, uint32_t dtype,
             std::string* reason);

}  // namespace gestalt::harness
