#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/harness/environment.h"
#include "tests/harness/guarded_tensor.h"

namespace gestalt::harness {

// One prepared state of a kernel, through its C table.
class PreparedKernel {
 public:
  // Views of the plan; NULL: an absent input. Throws the kernel's own status as an Error.
  PreparedKernel(const Environment& e, const core::KernelRef& ref, const core::OpDef& op, const core::Attrs& attrs,
                 const std::vector<const gestalt_view*>& in, const std::vector<const gestalt_view*>& out,
                 uint64_t accumulate);
  PreparedKernel(const PreparedKernel&) = delete;
  ~PreparedKernel();

  uint64_t workspace_bytes() const { return workspace_bytes_; }
  uint64_t workspace_align() const { return workspace_align_; }
  void run(const std::vector<const gestalt_view*>& in, const std::vector<const gestalt_view*>& out, uint64_t accumulate,
           void* workspace, void* stream) const;

 private:
  core::KernelRef ref_;
  std::string op_;
  void* state_ = nullptr;
  uint64_t workspace_bytes_ = 0, workspace_align_ = 1;
};

// How to run a kernel once, on fresh tensors in guard zones.
struct RunOptions {
  Layout in = Layout::kContiguous, out = Layout::kContiguous;
  int64_t threads = 1;
  unsigned char workspace_fill = 0xFF;
  bool into_sinks = false;                      // outputs marked !acc are f32 (f64) views
  const std::vector<Values>* add_to = nullptr;  // with into_sinks: add to these
  std::optional<size_t> overlay{};              // output 0 takes the place of this input
  const Case* planned = nullptr;                // prepare for these shapes instead
};
struct RunResult {
  std::vector<Values> out;  // then the inputs marked !mut
  std::vector<uint32_t> dtypes;
  std::vector<unsigned char> bits;
  std::string broken;  // what the kernel did that it must not
};
RunResult run_kernel(const Environment& e, const core::KernelRef& ref, const core::OpDef& op, const Case& c,
                     const Inputs& inputs, const RunOptions& options);

}  // namespace gestalt::harness
