#include "core/tensor/tensor.h"

#include <algorithm>

#include "core/base/error.h"

namespace gestalt::core {

Tensor::Tensor(DType dtype, std::span<const int64_t> new_shape, void* data) {
  point();
  dtype_size(dtype);
  view.data = data;
  view.dtype = dtype;
  view.device_type = GESTALT_DEVICE_CPU;
  reshape(new_shape);
}

Tensor::Tensor(const gestalt_view& other) {
  view = other;
  point();
  std::copy_n(other.shape, other.ndim, shape);
  std::copy_n(other.strides, other.ndim, strides);
}

Tensor& Tensor::operator=(const Tensor& other) noexcept {
  view = other.view;
  std::copy_n(other.shape, GESTALT_MAX_NDIM, shape);
  std::copy_n(other.strides, GESTALT_MAX_NDIM, strides);
  point();
  return *this;
}

void Tensor::reshape(std::span<const int64_t> new_shape) {
  if (new_shape.size() > GESTALT_MAX_NDIM)
    fail(GESTALT_INVALID_ARGUMENT, "[tensor] too many dimensions, got {}, expected at most {}", new_shape.size(),
         GESTALT_MAX_NDIM);
  for (int64_t d : new_shape)
    if (d < 0) fail(GESTALT_INVALID_ARGUMENT, "[tensor] negative dimension, got {}, expected 0 or more", d);
  view.ndim = static_cast<int32_t>(new_shape.size());
  std::copy(new_shape.begin(), new_shape.end(), shape);
  contiguous_strides(new_shape, strides);
}

void contiguous_strides(std::span<const int64_t> shape, int64_t* strides) {
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
}

int64_t num_elements(std::span<const int64_t> shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

int64_t num_elements(const gestalt_view& view) {
  return num_elements(std::span<const int64_t>(view.shape, static_cast<size_t>(view.ndim)));
}

uint64_t num_bytes(const gestalt_view& view) {
  return static_cast<uint64_t>(num_elements(view)) * dtype_size(view.dtype);
}

bool is_contiguous(const gestalt_view& view) {
  int64_t stride = 1;
  for (int i = view.ndim - 1; i >= 0; --i) {
    if (view.shape[i] == 0) return true;
    if (view.shape[i] == 1) continue;
    if (view.strides[i] != stride) return num_elements(view) == 0;
    stride *= view.shape[i];
  }
  return true;
}

Extent byte_extent(const gestalt_view& view) {
  if (num_elements(view) == 0) return {};
  int64_t low = 0, high = 0;
  for (int i = 0; i < view.ndim; ++i) {
    const int64_t reach = (view.shape[i] - 1) * view.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const auto size = static_cast<int64_t>(dtype_size(view.dtype));
  return {low * size, (high + 1) * size};
}

std::string describe(const gestalt_view& view) {
  std::string text = std::string(dtype_name(view.dtype)) + "[";
  for (int i = 0; i < view.ndim; ++i) text += (i ? ", " : "") + std::to_string(view.shape[i]);
  return text + "]";
}

}  // namespace gestalt::core
