#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "gestalt/view.hpp"

// Elements as kernels see them. A kernel computes in C: float for f32, bf16 and f16; double for f64; int64_t for
// integers. The dtype of each tensor is a run-time number that all threads share, so one compiled kernel serves every
// mixture of types; eight neighbouring elements move in 16-byte words wherever they lie aligned in a row.
namespace gestalt::kernels_cuda {

inline constexpr int kChunk = 8;

template <class C>
__device__ __forceinline__ C load_one(const void* data, uint32_t dtype, int64_t i) {
  switch (dtype) {
    case GESTALT_F32:
      return static_cast<C>(static_cast<const float*>(data)[i]);
    case GESTALT_BF16:
      return static_cast<C>(__uint_as_float(static_cast<uint32_t>(static_cast<const uint16_t*>(data)[i]) << 16));
    case GESTALT_F16:
      return static_cast<C>(__half2float(static_cast<const __half*>(data)[i]));
    case GESTALT_F64:
      return static_cast<C>(static_cast<const double*>(data)[i]);
    case GESTALT_I32:
      return static_cast<C>(static_cast<const int32_t*>(data)[i]);
    case GESTALT_I64:
      return static_cast<C>(static_cast<const int64_t*>(data)[i]);
    case GESTALT_U8:
      return static_cast<C>(static_cast<const uint8_t*>(data)[i]);
    default:
      return static_cast<C>(static_cast<const uint8_t*>(data)[i] != 0);
  }
}

template <class C>
__device__ __forceinline__ void store_one(void* data, uint32_t dtype, int64_t i, C x) {
  switch (dtype) {
    case GESTALT_F32:
      static_cast<float*>(data)[i] = static_cast<float>(x);
      break;
    case GESTALT_BF16:
      static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(static_cast<float>(x));
      break;
    case GESTALT_F16:
      static_cast<__half*>(data)[i] = __float2half_rn(static_cast<float>(x));
      break;
    case GESTALT_F64:
      static_cast<double*>(data)[i] = static_cast<double>(x);
      break;
    case GESTALT_I32:
      static_cast<int32_t*>(data)[i] = static_cast<int32_t>(x);
      break;
    case GESTALT_I64:
      static_cast<int64_t*>(data)[i] = static_cast<int64_t>(x);
      break;
    case GESTALT_U8:
      static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(static_cast<int64_t>(x));
      break;
    default:
      static_cast<uint8_t*>(data)[i] = x != C(0);
  }
}

// A tensor without its shape, as an argument of a kernel.
struct Side {
  char* data;
  uint32_t dtype;
  uint32_t size;  // bytes of an element
};

inline Side side_of(View view) {
  return {view.data<char>(), view.dtype(), static_cast<uint32_t>(size_of(view.dtype()))};
}

template <class C>
__device__ __forceinline__ C load_one(const Side& side, int64_t i) {
  return load_one<C>(side.data, side.dtype, i);
}
template <class C>
__device__ __forceinline__ void store_one(const Side& side, int64_t i, C x) {
  store_one<C>(side.data, side.dtype, i, x);
}
template <class C>
__device__ __forceinline__ void store_one(const Side& side, int64_t i, C x, bool accumulate) {
  store_one<C>(side.data, side.dtype, i, accumulate ? load_one<C>(side, i) + x : x);
}

// Up to eight elements on their way: fetch() only starts loads, so that those of several tensors are in flight
// together; unpack() converts.
template <class C>
struct Held {
  static constexpr int kWords = sizeof(C) == 4 ? 2 : 4;
  uint4 raw[kWords];
  bool wide;
};

template <class C>
__device__ __forceinline__ bool is_wide(const Side& side, const char* at, int64_t stride, int n) {
  const uint32_t mask = side.size == 1 ? 7 : 15;
  return stride == 1 && n == kChunk && side.size * kChunk <= sizeof(uint4) * Held<C>::kWords &&
         (reinterpret_cast<uintptr_t>(at) & mask) == 0;
}

// n of the elements `at`, at + stride, ...
template <class C>
__device__ __forceinline__ void fetch(const Side& side, int64_t at, int64_t stride, int n, Held<C>& held) {
  const char* p = side.data + at * side.size;
  held.wide = is_wide<C>(side, p, stride, n);
  if (!held.wide) return;
  if (side.size == 1) {
    const uint2 word = *reinterpret_cast<const uint2*>(p);
    held.raw[0] = make_uint4(word.x, word.y, 0, 0);
    return;
  }
  const uint4* words = reinterpret_cast<const uint4*>(p);
  held.raw[0] = words[0];
  if (side.size >= 4) held.raw[1] = words[1];
  if constexpr (Held<C>::kWords == 4) {
    if (side.size == 8) {
      held.raw[2] = words[2];
      held.raw[3] = words[3];
    }
  }
}

__device__ __forceinline__ uint32_t word_of(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// Elements one by one. Not inlined: rare, and large with its choice of types.
template <class C>
__device__ __noinline__ void load_slowly(const Side side, int64_t at, int64_t stride, int n, C* out) {
  for (int j = 0; j < n; ++j) out[j] = load_one<C>(side, at + j * stride);
}
template <class C>
__device__ __noinline__ void store_slowly(const Side side, int64_t at, int64_t stride, int n, const C* x) {
  for (int j = 0; j < n; ++j) store_one<C>(side, at + j * stride, x[j]);
}

// What lies beyond n becomes `beyond`.
template <class C>
__device__ __forceinline__ void unpack(const Side& side, int64_t at, int64_t stride, int n, const Held<C>& held,
                                       C (&out)[kChunk], C beyond = C(0)) {
  if (!held.wide) {
    C own[kChunk];
#pragma unroll
    for (int j = 0; j < kChunk; ++j) own[j] = beyond;
    load_slowly(side, at, stride, n, own);
#pragma unroll
    for (int j = 0; j < kChunk; ++j) out[j] = own[j];
    return;
  }
  switch (side.dtype) {
    case GESTALT_BF16:
#pragma unroll
      for (int j = 0; j < kChunk; ++j) {
        const uint32_t w = word_of(held.raw[0], j / 2);
        out[j] = static_cast<C>(__uint_as_float(j % 2 ? w & 0xffff0000u : w << 16));
      }
      break;
    case GESTALT_F16:
#pragma unroll
      for (int j = 0; j < kChunk; ++j) {
        const uint32_t w = word_of(held.raw[0], j / 2);
        out[j] = static_cast<C>(__half2float(__ushort_as_half(static_cast<uint16_t>(j % 2 ? w >> 16 : w))));
      }
      break;
    case GESTALT_F32:
#pragma unroll
      for (int j = 0; j < kChunk; ++j) out[j] = static_cast<C>(__uint_as_float(word_of(held.raw[j / 4], j % 4)));
      break;
    case GESTALT_I32:
#pragma unroll
      for (int j = 0; j < kChunk; ++j) out[j] = static_cast<C>(static_cast<int32_t>(word_of(held.raw[j / 4], j % 4)));
      break;
    case GESTALT_F64:
    case GESTALT_I64:
      if constexpr (Held<C>::kWords == 4) {
#pragma unroll
        for (int j = 0; j < kChunk; ++j) {
          const uint64_t bits = word_of(held.raw[j / 2], j % 2 * 2) |
                                static_cast<uint64_t>(word_of(held.raw[j / 2], j % 2 * 2 + 1)) << 32;
          out[j] = side.dtype == GESTALT_F64 ? static_cast<C>(__longlong_as_double(static_cast<int64_t>(bits)))
                                             : static_cast<C>(static_cast<int64_t>(bits));
        }
      }
      break;
    default:
#pragma unroll
      for (int j = 0; j < kChunk; ++j) {
        const uint32_t byte = word_of(held.raw[0], j / 4) >> (8 * (j % 4)) & 0xffu;
        out[j] = side.dtype == GESTALT_BOOL ? static_cast<C>(byte != 0) : static_cast<C>(byte);
      }
  }
}

// Both at once.
template <class C>
__device__ __forceinline__ void load_chunk(const Side& side, int64_t at, int64_t stride, int n, C (&out)[kChunk],
                                           C beyond = C(0)) {
  Held<C> held;
  fetch(side, at, stride, n, held);
  unpack(side, at, stride, n, held, out, beyond);
}

__device__ __forceinline__ uint32_t pair_of(__nv_bfloat16 low, __nv_bfloat16 high) {
  return __bfloat16_as_ushort(low) | static_cast<uint32_t>(__bfloat16_as_ushort(high)) << 16;
}
__device__ __forceinline__ uint32_t pair_of(__half low, __half high) {
  return __half_as_ushort(low) | static_cast<uint32_t>(__half_as_ushort(high)) << 16;
}

template <class C>
__device__ __forceinline__ void store_chunk(const Side& side, int64_t at, int64_t stride, int n, C (&x)[kChunk],
                                            bool accumulate = false) {
  if (accumulate) {
    C old[kChunk];
    load_chunk(side, at, stride, n, old);
#pragma unroll
    for (int j = 0; j < kChunk; ++j) x[j] = old[j] + x[j];
  }
  char* p = side.data + at * side.size;
  if (!is_wide<C>(side, p, stride, n)) {
    C own[kChunk];
#pragma unroll
    for (int j = 0; j < kChunk; ++j) own[j] = x[j];
    store_slowly(side, at, stride, n, own);
    return;
  }
  uint4* words = reinterpret_cast<uint4*>(p);
  switch (side.dtype) {
    case GESTALT_BF16: {
      uint32_t w[4];
#pragma unroll
      for (int j = 0; j < 4; ++j)
        w[j] = pair_of(__float2bfloat16_rn(static_cast<float>(x[2 * j])),
                       __float2bfloat16_rn(static_cast<float>(x[2 * j + 1])));
      words[0] = make_uint4(w[0], w[1], w[2], w[3]);
      break;
    }
    case GESTALT_F16: {
      uint32_t w[4];
#pragma unroll
      for (int j = 0; j < 4; ++j)
        w[j] =
            pair_of(__float2half_rn(static_cast<float>(x[2 * j])), __float2half_rn(static_cast<float>(x[2 * j + 1])));
      words[0] = make_uint4(w[0], w[1], w[2], w[3]);
      break;
    }
    case GESTALT_F32:
#pragma unroll
      for (int j = 0; j < 2; ++j)
        words[j] = make_uint4(
            __float_as_uint(static_cast<float>(x[4 * j])), __float_as_uint(static_cast<float>(x[4 * j + 1])),
            __float_as_uint(static_cast<float>(x[4 * j + 2])), __float_as_uint(static_cast<float>(x[4 * j + 3])));
      break;
    case GESTALT_F64:
#pragma unroll
      for (int j = 0; j < kChunk; ++j) reinterpret_cast<double*>(p)[j] = static_cast<double>(x[j]);
      break;
    default: {
      C own[kChunk];
#pragma unroll
      for (int j = 0; j < kChunk; ++j) own[j] = x[j];
      store_slowly(side, at, 1, kChunk, own);
    }
  }
}

// exp, log and the like in the compute type. ex2 takes powers of two, within 2 units in the last place.
__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ double exp2_of(double x) { return exp2(x); }

template <class C>
inline constexpr C kLog2e = C(1.4426950408889634074);

__device__ __forceinline__ float exp_of(float x) { return exp2_of(x * kLog2e<float>); }
__device__ __forceinline__ double exp_of(double x) { return exp(x); }

__device__ __forceinline__ float infinity_of(float) { return __int_as_float(0x7f800000); }
__device__ __forceinline__ double infinity_of(double) { return __longlong_as_double(0x7ff0000000000000ll); }
template <class C>
__device__ __forceinline__ C infinity() {
  return infinity_of(C(0));
}
template <class C>
__device__ __forceinline__ C not_a_number() {
  return infinity<C>() - infinity<C>();
}

}  // namespace gestalt::kernels_cuda
