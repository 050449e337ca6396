// For the tests of this folder: kernels in this process that can be told how to behave, with plain reference arithmetic.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "core/plugin/registry.h"

namespace gestalt::core::test {

constexpr uint64_t kWilling = GESTALT_KERNEL_DETERMINISTIC | GESTALT_KERNEL_STRIDED | GESTALT_KERNEL_ACCUMULATES |
                              GESTALT_KERNEL_ANY_SHAPE;

struct FakeKernel {
  std::string op;
  std::string backend = "test.cpu";
  uint64_t flags = kWilling;
  std::string refuses{};                     // prepare fails with this
  int32_t refuse_code = GESTALT_UNSUPPORTED;
  bool refuses_to_accumulate = false;        // prepare is UNSUPPORTED where an output may be asked to accumulate
  uint64_t workspace = 0, workspace_align = 1;
  std::string run_fails{};                   // run returns this as a DATA_ERROR
  int prepared = 0;                          // counted
};

// A plugin of this process made of such kernels. Lives as long as the registry that it was added to.
class FakePlugin {
 public:
  FakePlugin(std::string id, std::vector<FakeKernel> kernels);
  FakePlugin(const FakePlugin&) = delete;
  ~FakePlugin();
  const gestalt_plugin* descriptor() const { return &plugin_; }
  FakeKernel& kernel(size_t i) { return kernels_[i]; }
  static int states_alive();

 private:
  std::string id_;
  std::vector<FakeKernel> kernels_;
  std::vector<size_t> slots_;
  std::deque<gestalt_kernel> tables_;
  std::vector<const gestalt_kernel*> pointers_;
  gestalt_plugin plugin_{};
};

// A willing kernel for each op that the reference arithmetic knows.
std::vector<FakeKernel> core_kernels();

// The elements of a view in row-major order as doubles, and back (`add`: added to what is there).
std::vector<double> read_view(const gestalt_view& v);
void write_view(const gestalt_view& v, const std::vector<double>& values, bool add);

}  // namespace gestalt::core::test
