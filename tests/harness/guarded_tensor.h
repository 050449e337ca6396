#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "tests/harness/values.h"

namespace gestalt::harness {

enum class Layout {
  kContiguous,
  kTransposed,  // dimensions stored last to first
  kSliced,      // gaps between elements and rows
  kBroadcast,   // stride 0 in dimension 0
  kUnaligned,   // contiguous, one element after an aligned address
};
const char* layout_name(Layout layout);
bool layout_fits(Layout layout, const Shape& shape);

// A tensor with guard zones before, after and between its elements. Without values its elements are poison: NaN, or a
// value that no result has.
class GuardedTensor {
 public:
  GuardedTensor(uint32_t dtype, const Shape& shape, Layout layout, const Values* values);

  const core::Tensor& tensor() const { return tensor_; }
  std::span<unsigned char> memory() { return bytes_; }  // with the guards
  std::vector<unsigned char> elements() const;  // row-major bytes
  Values values() const;
  // Empty when no byte but those of elements changed.
  std::string guards() const;
  bool unchanged() const { return bytes_ == before_; }

 private:
  template <class F>
  void each(F f) const;

  uint32_t dtype_;
  Shape shape_;
  std::vector<unsigned char> bytes_, before_;
  std::vector<bool> own_;
  size_t begin_ = 0;  // of element 0, in bytes_
  core::Tensor tensor_;
};

// Plain memory with guard zones: a workspace of exactly the size that was asked for.
class GuardedBytes {
 public:
  GuardedBytes(uint64_t size, uint64_t align, unsigned char fill);
  void* data() { return size_ ? bytes_.data() + begin_ : nullptr; }
  std::span<unsigned char> memory() { return bytes_; }
  bool guards_intact() const;

 private:
  uint64_t size_;
  std::vector<unsigned char> bytes_;
  size_t begin_;
};

}  // namespace gestalt::harness
