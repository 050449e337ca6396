// What all CUDA kernels of this plugin share: who they are, how they are launched, and how elements are read and
// written. Device functions are for .cu files only.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "gestalt/kernel.hpp"
#include "gestalt/plan_checks.hpp"

namespace gestalt::kernels_cuda {

// Base of a kernel class. A kernel that takes any strides, or honours the accumulate bit, overrides flags.
struct CudaKernel {
  static constexpr std::string_view device = "cuda", backend = "gestalt.cuda";
  static constexpr uint64_t flags =
      GESTALT_KERNEL_CAPTURABLE | GESTALT_KERNEL_DETERMINISTIC | GESTALT_KERNEL_ANY_SHAPE;
  static constexpr uint64_t accumulating = flags | GESTALT_KERNEL_ACCUMULATES;
  static constexpr uint64_t strided = flags | GESTALT_KERNEL_STRIDED;
};

inline cudaStream_t stream_of(Call call) { return static_cast<cudaStream_t>(call.stream()); }

inline void check_cuda(cudaError_t error, std::string_view what) {
  if (error != cudaSuccess)
    throw Error(error == cudaErrorMemoryAllocation ? GESTALT_OUT_OF_MEMORY : GESTALT_INTERNAL,
                "[" + std::string(what) + "] " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error));
}
// After each launch: a launch that the driver refuses says so only here.
inline void check_launch(std::string_view what) { check_cuda(cudaGetLastError(), what); }

inline constexpr int kThreads = 256;

// Blocks for n elements, at least 1; kernels loop with each_index, so fewer blocks than elements need are right too.
inline unsigned blocks_for(int64_t n, int64_t per_block = kThreads) {
  return static_cast<unsigned>(std::clamp<int64_t>((n + per_block - 1) / per_block, 1, int64_t{1} << 30));
}

// A type as an argument, for dispatch: with_float(dtype, [&](auto type) { using T = typename decltype(type)::T; ... }).
template <class Element>
struct Type {
  using T = Element;
};

template <class F>
void with_float(DType dtype, F f) {
  switch (dtype) {
    case kF32:
      return f(Type<float>{});
    case kBF16:
      return f(Type<__nv_bfloat16>{});
    case kF16:
      return f(Type<__half>{});
    case kF64:
      return f(Type<double>{});
    default:
      throw Error(GESTALT_INTERNAL, "[dtype] not a floating type, got " + std::string(name_of(dtype)));
  }
}

template <class F>
void with_index(DType dtype, F f) {
  if (dtype == kI32) return f(Type<int32_t>{});
  if (dtype == kI64) return f(Type<int64_t>{});
  throw Error(GESTALT_INTERNAL, "[dtype] not an index type, got " + std::string(name_of(dtype)));
}

template <class F>
void with_any(DType dtype, F f) {
  if (dtype == kI32 || dtype == kI64) return with_index(dtype, f);
  if (dtype == kU8 || dtype == kBool) return f(Type<uint8_t>{});
  with_float(dtype, f);
}

// What sums and functions of T are computed in.
template <class T>
using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;

#ifdef __CUDACC__

template <class F>
__device__ void each_index(int64_t n, F f) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}

// Conversions round to nearest even.
template <class C, class T>
__device__ __forceinline__ C to(T value) {
  if constexpr (std::is_same_v<T, C>) {
    return value;
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return static_cast<C>(__bfloat162float(value));
  } else if constexpr (std::is_same_v<T, __half>) {
    return static_cast<C>(__half2float(value));
  } else if constexpr (std::is_same_v<C, __nv_bfloat16>) {
    if constexpr (std::is_same_v<T, double>)
      return __double2bfloat16(value);
    else
      return __float2bfloat16_rn(static_cast<float>(value));
  } else if constexpr (std::is_same_v<C, __half>) {
    if constexpr (std::is_same_v<T, double>)
      return __double2half(value);
    else
      return __float2half_rn(static_cast<float>(value));
  } else {
    return static_cast<C>(value);
  }
}

template <class T>
__device__ __forceinline__ Compute<T> load(const T* at) {
  return to<Compute<T>>(*at);
}

// Writes, or adds to what is there (outputs marked !acc).
template <class T, class C>
__device__ __forceinline__ void put(T* at, C value, bool accumulate = false) {
  if (accumulate) value += to<C>(*at);
  *at = to<T>(value);
}

#endif  // __CUDACC__

}  // namespace gestalt::kernels_cuda
