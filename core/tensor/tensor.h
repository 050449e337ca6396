// A tensor is a view with its shape and strides beside it, in three cache lines. It owns no memory: data points into a
// Buffer or an Arena of core/runtime.
#pragma once

#include <span>
#include <string>

#include "core/tensor/dtype.h"

namespace gestalt::core {

struct alignas(64) Tensor {
  gestalt_view view{};
  int64_t shape[GESTALT_MAX_NDIM] = {};
  int64_t strides[GESTALT_MAX_NDIM] = {};

  Tensor() { point(); }
  // Contiguous, on the CPU until on() says otherwise.
  Tensor(DType dtype, std::span<const int64_t> shape, void* data = nullptr);
  Tensor(DType dtype, std::initializer_list<int64_t> shape, void* data = nullptr)
      : Tensor(dtype, std::span(shape.begin(), shape.size()), data) {}
  // A copy of any view: same data, shape and strides.
  explicit Tensor(const gestalt_view& other);

  // Copies share data; the view of each points at its own shape and strides.
  Tensor(const Tensor& other) noexcept { *this = other; }
  Tensor& operator=(const Tensor& other) noexcept;

  Tensor& on(int32_t device_type, int32_t device_id) {
    view.device_type = device_type;
    view.device_id = device_id;
    return *this;
  }
  // Replaces the shape and makes the strides contiguous. No allocation.
  void reshape(std::span<const int64_t> new_shape);

  int ndim() const { return view.ndim; }
  DType dtype() const { return view.dtype; }
  std::span<const int64_t> dims() const { return {shape, static_cast<size_t>(view.ndim)}; }
  template <class T>
  T* data() const {
    return static_cast<T*>(view.data);
  }

 private:
  void point() {
    view.shape = shape;
    view.strides = strides;
  }
};
static_assert(sizeof(Tensor) == 192);

// strides[i] = product of the dimensions after i; a dimension of 0 counts as 1, so that strides stay non-zero.
void contiguous_strides(std::span<const int64_t> shape, int64_t* strides);

int64_t num_elements(std::span<const int64_t> shape);
int64_t num_elements(const gestalt_view& view);

// Bytes of the elements when contiguous.
uint64_t num_bytes(const gestalt_view& view);

// Dimensions of size 1 may have any stride; an empty tensor is contiguous.
bool is_contiguous(const gestalt_view& view);

// The bytes that a view touches, relative to its data: [first, last). Empty for an empty tensor. first < 0 only with
// negative strides.
struct Extent {
  int64_t first = 0, last = 0;
};
Extent byte_extent(const gestalt_view& view);

// "f32[2, 3]" for messages.
std::string describe(const gestalt_view& view);

}  // namespace gestalt::core
