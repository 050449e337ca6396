#pragma once

#include <cstdint>

#include "gestalt/view.hpp"

// Runs of elements between tensors of any dtype and stride, and arrays of the compute type C. A run that already is a
// contiguous array of C is used in place, so that f32 and f64 tensors are not copied.
namespace gestalt::kernels_cpu {

// Longest run that elementwise kernels handle at once: their scratch arrays live on the stack.
inline constexpr int64_t kBlock = 1024;

template <class C>
using LoadFn = void (*)(const void* from, int64_t stride, int64_t n, C* to);
template <class C>
using StoreFn = void (*)(const C* from, void* to, int64_t stride, int64_t n, bool accumulate);

template <class C>
LoadFn<C> load_fn(uint32_t dtype);
template <class C>
StoreFn<C> store_fn(uint32_t dtype);

template <class C>
constexpr uint32_t compute_dtype();
template <>
constexpr uint32_t compute_dtype<float>() {
  return kF32;
}
template <>
constexpr uint32_t compute_dtype<double>() {
  return kF64;
}
template <>
constexpr uint32_t compute_dtype<int64_t>() {
  return kI64;
}

template <class C>
class In {
 public:
  explicit In(View view)
      : data_(view.data<const char>()),
        size_(size_of(view.dtype())),
        direct_(view.dtype() == compute_dtype<C>()),
        load_(load_fn<C>(view.dtype())) {}

  // n elements from element `offset` on: in place if possible, else copied to scratch.
  const C* run(int64_t offset, int64_t stride, int64_t n, C* scratch) const {
    const char* from = data_ + offset * size_;
    if (direct_ && (stride == 1 || n == 1)) return reinterpret_cast<const C*>(from);
    load_(from, stride, n, scratch);
    return scratch;
  }
  C one(int64_t offset) const {
    C value;
    load_(data_ + offset * size_, 1, 1, &value);
    return value;
  }

 private:
  const char* data_;
  int64_t size_;
  bool direct_;
  LoadFn<C> load_;
};

template <class C>
class Out {
 public:
  explicit Out(View view, bool accumulate = false)
      : data_(view.data<char>()),
        size_(size_of(view.dtype())),
        direct_(view.dtype() == compute_dtype<C>() && !accumulate),
        accumulate_(accumulate),
        store_(store_fn<C>(view.dtype())) {}

  // Where to compute the run: in place, or scratch. finish() with the same arguments then stores it.
  C* run(int64_t offset, int64_t stride, int64_t n, C* scratch) const {
    if (direct_ && (stride == 1 || n == 1)) return reinterpret_cast<C*>(data_ + offset * size_);
    return scratch;
  }
  void finish(const C* values, int64_t offset, int64_t stride, int64_t n) const {
    char* to = data_ + offset * size_;
    if (static_cast<const void*>(values) == to) return;
    store_(values, to, stride, n, accumulate_);
  }
  void one(int64_t offset, C value) const { store_(&value, data_ + offset * size_, 1, 1, accumulate_); }

 private:
  char* data_;
  int64_t size_;
  bool direct_, accumulate_;
  StoreFn<C> store_;
};

}  // namespace gestalt::kernels_cpu
