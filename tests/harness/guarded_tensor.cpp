#include "tests/harness/guarded_tensor.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace gestalt::harness {

namespace {

constexpr unsigned char kGuard = 0xA5;
constexpr size_t kZone = 256;
constexpr size_t kWorkspaceZone = 4096;
constexpr size_t kAlign = 64;

size_t aligned(const std::vector<unsigned char>& bytes, size_t from, size_t align) {
  const auto base = reinterpret_cast<uintptr_t>(bytes.data());
  return (base + from + align - 1) / align * align - base;
}

}  // namespace

const char* layout_name(Layout layout) {
  switch (layout) {
    case Layout::kContiguous:
      return "contiguous";
    case Layout::kTransposed:
      return "transposed";
    case Layout::kSliced:
      return "sliced";
    case Layout::kBroadcast:
      return "broadcast";
    case Layout::kUnaligned:
      return "unaligned";
  }
  return "";
}

bool layout_fits(Layout layout, const Shape& shape) {
  if (layout == Layout::kTransposed) return shape.size() >= 2;
  if (layout == Layout::kSliced) return !shape.empty();
  if (layout == Layout::kBroadcast) return !shape.empty() && shape[0] > 1;
  return true;
}

GuardedTensor::GuardedTensor(uint32_t dtype, const Shape& shape, Layout layout, const Values* values)
    : dtype_(dtype), shape_(shape) {
  const size_t size = core::dtype_size(dtype);
  const int n = static_cast<int>(shape.size());
  tensor_ = core::Tensor(dtype, std::span<const int64_t>(shape.data(), shape.size()));
  if (layout == Layout::kTransposed) {
    int64_t s = 1;
    for (int i = 0; i < n; ++i) {
      tensor_.strides[i] = s;
      s *= std::max<int64_t>(shape[static_cast<size_t>(i)], 1);
    }
  } else if (layout == Layout::kSliced) {
    int64_t s = 2;
    for (int i = n - 1; i >= 0; --i) {
      tensor_.strides[i] = s;
      s *= shape[static_cast<size_t>(i)] + 1;
    }
  } else if (layout == Layout::kBroadcast && layout_fits(layout, shape)) {
    tensor_.strides[0] = 0;
  }
  const core::Extent extent = core::byte_extent(tensor_.view);
  const size_t offset = layout == Layout::kUnaligned ? size : 0;
  bytes_.assign(2 * kZone + kAlign + offset + static_cast<size_t>(extent.last), kGuard);
  begin_ = aligned(bytes_, kZone, kAlign) + offset;
  own_.assign(bytes_.size(), false);
  tensor_.view.data = bytes_.data() + begin_;
  int64_t i = 0;
  each([&](size_t at) {
    if (values)
      encode(dtype, (*values)[i], bytes_.data() + at);
    else
      std::memset(bytes_.data() + at, 0xFF, size);
    for (size_t k = 0; k < size; ++k) own_[at + k] = true;
    ++i;
  });
  before_ = bytes_;
}

template <class F>
void GuardedTensor::each(F f) const {
  const int64_t total = count_of(shape_);
  const size_t size = core::dtype_size(dtype_);
  for (int64_t i = 0; i < total; ++i) {
    int64_t rest = i, at = 0;
    for (size_t d = shape_.size(); d-- > 0;) {
      at += rest % shape_[d] * tensor_.strides[d];
      rest /= shape_[d];
    }
    f(begin_ + static_cast<size_t>(at) * size);
  }
}

std::vector<unsigned char> GuardedTensor::elements() const {
  std::vector<unsigned char> out;
  const size_t size = core::dtype_size(dtype_);
  each([&](size_t at) {
    out.insert(out.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(at),
               bytes_.begin() + static_cast<std::ptrdiff_t>(at + size));
  });
  return out;
}

Values GuardedTensor::values() const { return decode(dtype_, shape_, elements()); }

std::string GuardedTensor::guards() const {
  for (size_t i = 0; i < bytes_.size(); ++i)
    if (!own_[i] && bytes_[i] != kGuard)
      return fmt::format("wrote outside the tensor, {} bytes from its start",
                         static_cast<int64_t>(i) - static_cast<int64_t>(begin_));
  return {};
}

GuardedBytes::GuardedBytes(uint64_t size, uint64_t align, unsigned char fill)
    : size_(size), bytes_(2 * kWorkspaceZone + size + std::max<uint64_t>(align, kAlign), kGuard) {
  begin_ = aligned(bytes_, kWorkspaceZone, std::max<uint64_t>(align, 1));
  std::memset(bytes_.data() + begin_, fill, size);
}

bool GuardedBytes::guards_intact() const {
  for (size_t i = 0; i < bytes_.size(); ++i)
    if ((i < begin_ || i >= begin_ + size_) && bytes_[i] != kGuard) return false;
  return true;
}

}  // namespace gestalt::harness
