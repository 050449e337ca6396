#include "plugins/kernels_cpu/block_io.h"

#include <type_traits>

#include "plugins/kernels_cpu/element.h"

namespace gestalt::kernels_cpu {
namespace {

struct Bool {
  uint8_t value;
};

template <class C, class T>
C load_one(T x) {
  if constexpr (std::is_same_v<T, Bool>) {
    return static_cast<C>(x.value != 0);
  } else {
    return convert<C>(x);
  }
}

template <class T, class C>
T store_one(C x) {
  if constexpr (std::is_same_v<T, Bool>) {
    return Bool{static_cast<uint8_t>(x != 0)};
  } else {
    return convert<T>(x);
  }
}

template <class C, class T>
void load(const void* from, int64_t stride, int64_t n, C* to) {
  const T* p = static_cast<const T*>(from);
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = load_one<C>(p[i]);
  } else if (stride == 0) {
    const C value = n > 0 ? load_one<C>(*p) : C{};
    for (int64_t i = 0; i < n; ++i) to[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = load_one<C>(p[i * stride]);
  }
}

template <class C, class T>
void store(const C* from, void* to, int64_t stride, int64_t n, bool accumulate) {
  T* p = static_cast<T*>(to);
  if (accumulate) {
    for (int64_t i = 0; i < n; ++i) p[i * stride] = store_one<T, C>(load_one<C>(p[i * stride]) + from[i]);
  } else if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) p[i] = store_one<T, C>(from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) p[i * stride] = store_one<T, C>(from[i]);
  }
}

}  // namespace

template <class C>
LoadFn<C> load_fn(uint32_t dtype) {
  switch (dtype) {
    case kF32:
      return load<C, float>;
    case kF64:
      return load<C, double>;
    case kBF16:
      return load<C, Bf16>;
    case kF16:
      return load<C, F16>;
    case kI32:
      return load<C, int32_t>;
    case kI64:
      return load<C, int64_t>;
    case kU8:
      return load<C, uint8_t>;
    default:
      return load<C, Bool>;
  }
}

template <class C>
StoreFn<C> store_fn(uint32_t dtype) {
  switch (dtype) {
    case kF32:
      return store<C, float>;
    case kF64:
      return store<C, double>;
    case kBF16:
      return store<C, Bf16>;
    case kF16:
      return store<C, F16>;
    case kI32:
      return store<C, int32_t>;
    case kI64:
      return store<C, int64_t>;
    case kU8:
      return store<C, uint8_t>;
    default:
      return store<C, Bool>;
  }
}

template LoadFn<float> load_fn<float>(uint32_t);
template LoadFn<double> load_fn<double>(uint32_t);
template LoadFn<int64_t> load_fn<int64_t>(uint32_t);
template StoreFn<float> store_fn<float>(uint32_t);
template StoreFn<double> store_fn<double>(uint32_t);
template StoreFn<int64_t> store_fn<int64_t>(uint32_t);

}  // namespace gestalt::kernels_cpu
