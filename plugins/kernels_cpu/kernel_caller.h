#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gestalt/abi/plugin.h"
#include "gestalt/attrs.hpp"
#include "gestalt/dtype.hpp"

// For the tests of this plugin: runs a kernel through its C table on tensors made here, and compares it with a plain
// function in double over every dtype, layout and number of threads.
namespace gestalt::kernels_cpu {

using Values = std::vector<double>;
using Shape = std::vector<int64_t>;

enum class Layout { kContiguous, kReversed, kGaps };  // reversed: dimensions stored last to first

// A tensor with guard zones around and between its elements.
class Array {
 public:
  Array(DType dtype, Shape shape, Layout layout = Layout::kContiguous);
  Array(DType dtype, Shape shape, const Values& values, Layout layout = Layout::kContiguous);

  void set(const Values& values);
  Values get() const;  // row-major
  bool guards_intact() const;
  const gestalt_view* view() const { return &view_; }
  gestalt_view* view() { return &view_; }
  const std::vector<unsigned char>& bytes() const { return bytes_; }
  void set_stride(int dim, int64_t stride) { strides_[static_cast<size_t>(dim)] = stride; }

 private:
  std::vector<int64_t> offsets() const;

  Shape shape_, strides_;
  int64_t size_, room_;
  std::vector<unsigned char> bytes_;
  gestalt_view view_;
};

struct CallOptions {
  int64_t threads = 1;
  uint64_t accumulate = 0;
  std::string_view backend = "gestalt.cpu";
  uint64_t require = 0;
};

// Null entries of `in` are absent. Throws gestalt::Error with the kernel's status; fails on a write beyond the
// workspace.
void call_kernel(std::string_view op, const std::vector<Array*>& in, const std::vector<Array*>& out,
                 const std::vector<Attr>& attrs, const CallOptions& options = {});

struct Input {
  Shape shape;
  Values values;
  DType fixed = 0;    // 0: the dtype under test
  bool wide = false;  // f32, or f64 when that is under test
  bool absent = false;
};

struct Output {
  Shape shape;
  bool accumulates = false;
  bool wide = false;
};

using Reference = std::function<std::vector<Values>(const std::vector<Values>&)>;

struct OpCase {
  std::string_view op;
  std::vector<Input> in;
  std::vector<Output> out;
  std::vector<Attr> attrs;
  Reference reference;
  double loosen = 1;  // of the tolerance, for long sums
  std::string_view backend = "gestalt.cpu";
};

// All of: f64 f32 bf16 f16; contiguous, reversed and gapped layouts; the accumulate bit; equal bits for 1, 2 and 3
// threads; inputs and guards untouched.
void check_op(const OpCase& test);

// Gradient of sum_i dot(forward(in)[i], dy[i]) with respect to in[which], by central differences.
Values finite_differences(const Reference& forward, const std::vector<Values>& in, size_t which,
                          const std::vector<Values>& dy);

// Deterministic values in [-1, 1).
Values some_values(int64_t n, uint64_t seed = 1);
int64_t count_of(const Shape& shape);

}  // namespace gestalt::kernels_cpu
