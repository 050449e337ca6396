#pragma once

#include "plugins/kernels_cuda/element.cuh"

// Eight neighbouring elements of 2 bytes (bf16, or f16 where `half`) or of 4 (f32), aligned to 16 bytes: what the fast
// forms of kernels move. The size is known to the compiler, so few registers are needed and many threads fit.
namespace gestalt::kernels_cuda {

template <int kBytes>
struct Packed {
  uint4 word[kBytes / 2];

  __device__ __forceinline__ void load(const char* at) {
#pragma unroll
    for (int i = 0; i < kBytes / 2; ++i) word[i] = reinterpret_cast<const uint4*>(at)[i];
  }
  __device__ __forceinline__ void store(char* at) const {
#pragma unroll
    for (int i = 0; i < kBytes / 2; ++i) reinterpret_cast<uint4*>(at)[i] = word[i];
  }
  __device__ __forceinline__ void unpack(bool half, float (&x)[kChunk]) const {
    if constexpr (kBytes == 4) {
#pragma unroll
      for (int j = 0; j < kChunk; ++j) x[j] = __uint_as_float(word_of(word[j / 4], j % 4));
    } else if (half) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const uint32_t pair = word_of(word[0], j);
        const float2 both = __half22float2(reinterpret_cast<const __half2&>(pair));
        x[2 * j] = both.x;
        x[2 * j + 1] = both.y;
      }
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const uint32_t pair = word_of(word[0], j);
        x[2 * j] = __uint_as_float(pair << 16);
        x[2 * j + 1] = __uint_as_float(pair & 0xffff0000u);
      }
    }
  }
  __device__ __forceinline__ void pack(bool half, const float (&x)[kChunk]) {
    if constexpr (kBytes == 4) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        word[i] = make_uint4(__float_as_uint(x[4 * i]), __float_as_uint(x[4 * i + 1]), __float_as_uint(x[4 * i + 2]),
                             __float_as_uint(x[4 * i + 3]));
    } else {
      uint32_t pair[4];
      if (half) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const __half2 both = __floats2half2_rn(x[2 * j], x[2 * j + 1]);
          pair[j] = reinterpret_cast<const uint32_t&>(both);
        }
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const __nv_bfloat162 both = __floats2bfloat162_rn(x[2 * j], x[2 * j + 1]);
          pair[j] = reinterpret_cast<const uint32_t&>(both);
        }
      }
      word[0] = make_uint4(pair[0], pair[1], pair[2], pair[3]);
    }
  }
};

template <int kBytes>
__device__ __forceinline__ void load_packed(const char* at, bool half, float (&x)[kChunk]) {
  Packed<kBytes> packed;
  packed.load(at);
  packed.unpack(half, x);
}
template <int kBytes>
__device__ __forceinline__ void store_packed(char* at, bool half, const float (&x)[kChunk]) {
  Packed<kBytes> packed;
  packed.pack(half, x);
  packed.store(at);
}

inline bool packs(DType dtype) { return dtype == kF32 || dtype == kBF16 || dtype == kF16; }
inline bool aligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

// Whether each row of `view`, its last dimension, is a run of whole aligned chunks, of the given dtype.
inline bool has_packed_rows(View view, DType dtype) {
  if (view.dtype() != dtype || !packs(dtype) || view.ndim() < 1 || !aligned(view.data<void>())) return false;
  if (view.dim(-1) % kChunk != 0 || (view.stride(-1) != 1 && view.dim(-1) > 1)) return false;
  for (int d = 0; d + 1 < view.ndim(); ++d)
    if (view.dim(d) > 1 && view.stride(d) * size_of(dtype) % 16 != 0) return false;
  return true;
}

}  // namespace gestalt::kernels_cuda
