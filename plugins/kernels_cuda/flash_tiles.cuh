// Tiles of attention in shared memory and on the tensor cores (mma.sync m16n8k16, sm_80 and newer).
#pragma once

#include <cstdint>

#include "plugins/kernels_cuda/flash_attention.h"

namespace gestalt::kernels_cuda {

// Lets a kernel use so much shared memory, more than the usual; some GPUs have less.
template <class Kernel>
void allow_shared(Kernel kernel, size_t bytes) {
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)) == cudaSuccess)
    return;
  cudaGetLastError();
  throw Unsupported("flash: needs " + std::to_string(bytes) + " bytes of shared memory, more than a block has here");
}

inline constexpr int kFlashWarps = 4, kFlashThreads = kFlashWarps * 32;
inline constexpr int kFlashPad = 8;  // elements a row of a tile has more, against bank conflicts

// Fragments of a warp. Lane l has group g = l / 4 and place p = l % 4. An accumulator of 16 x 8 has elements (g, 2p),
// (g, 2p + 1), (g + 8, 2p), (g + 8, 2p + 1).
template <class T>
__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void ldmatrix(uint32_t (&r)[4], const void* row) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}
__device__ __forceinline__ void ldmatrix_turned(uint32_t (&r)[4], const void* row) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}

template <class T>
__device__ __forceinline__ uint32_t pack(float low, float high) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&two);
  } else {
    const __half2 two = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&two);
  }
}

// A warp has R accumulators of 16 rows one below the other, so that what it reads of b serves all of them.
//
// c[16 R, N] += a[16 R, D] b[N, D]^T, both in shared memory with rows of D + kFlashPad elements: a at the warp's first
// row.
template <class T, int N, int D, int R>
__device__ __forceinline__ void multiply_turned(float (&c)[R][N / 8][4], const T* a, const T* b) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int kRow = D + kFlashPad;
#pragma unroll
  for (int k = 0; k < D; k += 16) {
    uint32_t fa[R][4];
#pragma unroll
    for (int r = 0; r < R; ++r) ldmatrix(fa[r], a + (16 * r + lane % 16) * kRow + k + lane / 16 * 8);
#pragma unroll
    for (int n = 0; n < N; n += 16) {
      uint32_t fb[4];  // rows n..n+7 at k and k + 8, rows n+8..n+15 at k and k + 8
      ldmatrix(fb, b + (n + lane / 16 * 8 + lane % 8) * kRow + k + lane / 8 % 2 * 8);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        mma<T>(c[r][n / 8], fa[r], fb[0], fb[1]);
        mma<T>(c[r][n / 8 + 1], fa[r], fb[2], fb[3]);
      }
    }
  }
}

// c[16 R, D] += a[16 R, K] b[K, D]: a from accumulators, rounded; b in shared memory.
template <class T, int K, int D, int R>
__device__ __forceinline__ void multiply_weights(float (&c)[R][D / 8][4], const float (&a)[R][K / 8][4], const T* b) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int kRow = D + kFlashPad;
#pragma unroll
  for (int k = 0; k < K; k += 16) {
    uint32_t fa[R][4];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const float(&low)[4] = a[r][k / 8], (&high)[4] = a[r][k / 8 + 1];
      fa[r][0] = pack<T>(low[0], low[1]);
      fa[r][1] = pack<T>(low[2], low[3]);
      fa[r][2] = pack<T>(high[0], high[1]);
      fa[r][3] = pack<T>(high[2], high[3]);
    }
#pragma unroll
    for (int n = 0; n < D; n += 16) {
      uint32_t fb[4];  // keys k..k+7 and k+8..k+15 at n, the same at n + 8
      ldmatrix_turned(fb, b + (k + lane % 16) * kRow + n + lane / 16 * 8);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        mma<T>(c[r][n / 8], fa[r], fb[0], fb[1]);
        mma<T>(c[r][n / 8 + 1], fa[r], fb[2], fb[3]);
      }
    }
  }
}

// Rows [first, first + Rows) of one head into a tile, zeros beyond `end`.
template <class T, int Rows, int D>
__device__ __forceinline__ void load_tile(T* tile, FlashView x, int64_t head, int64_t first, int64_t end) {
  constexpr int kRow = D + kFlashPad, kVector = 8, kPieces = D / kVector;
  const T* from = static_cast<const T*>(x.data) + head * x.head;
  const bool aligned =
      x.feature == 1 && (reinterpret_cast<uintptr_t>(from) | static_cast<uintptr_t>(x.token * 2)) % 16 == 0;
  for (int i = static_cast<int>(threadIdx.x); i < Rows * kPieces; i += kFlashThreads) {
    const int row = i / kPieces, column = i % kPieces * kVector;
    T* to = tile + row * kRow + column;
    const T* at = from + (first + row) * x.token + column * x.feature;
    if (first + row >= end) {
      *reinterpret_cast<uint4*>(to) = make_uint4(0, 0, 0, 0);
    } else if (aligned) {
      const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(shared), "l"(at) : "memory");
    } else {
      for (int e = 0; e < kVector; ++e) to[e] = at[e * x.feature];
    }
  }
}
__device__ __forceinline__ void commit_loads() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int Pending>
__device__ __forceinline__ void wait_loads() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}

// The segment [first, last) that holds a token; empty when none does. Starts that are out of order or range make no
// range that leaves the tokens.
struct Segment {
  int64_t first, last;
};
__device__ inline Segment segment_of(const FlashPlan& p, int64_t token) {
  const auto start = [&](int64_t i) {
    const int64_t s = p.wide_starts ? static_cast<const int64_t*>(p.starts)[i * p.starts_stride]
                                    : static_cast<int64_t>(static_cast<const int32_t*>(p.starts)[i * p.starts_stride]);
    return s < 0 ? 0 : s > p.tokens ? p.tokens : s;
  };
  if (p.num_starts < 2 || token >= p.tokens) return {0, 0};
  int64_t low = 0, high = p.num_starts;  // the number of starts at or before the token
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (start(middle) <= token)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0 || low == p.num_starts) return {0, 0};
  return {start(low - 1), start(low)};
}

// The keys [first, last) that a query sees; for the transposed question see queries_of.
__device__ inline Segment keys_of(const FlashPlan& p, int64_t query) {
  Segment s = segment_of(p, query);
  if (s.first >= s.last) return {0, 0};
  if (p.window > 0) {
    const int64_t from = query - p.window + 1, to = query + p.window;
    s.first = from > s.first ? from : s.first;
    s.last = to < s.last ? to : s.last;
  }
  if (p.causal && query + 1 < s.last) s.last = query + 1;
  return s;
}
__device__ inline Segment queries_of(const FlashPlan& p, int64_t key) {
  Segment s = segment_of(p, key);
  if (s.first >= s.last) return {0, 0};
  if (p.window > 0) {
    const int64_t from = key - p.window + 1, to = key + p.window;
    s.first = from > s.first ? from : s.first;
    s.last = to < s.last ? to : s.last;
  }
  if (p.causal && key > s.first) s.first = key;
  return s;
}

// What the rows of a block see: each its own range, the range that covers them all, and the range that all of them see.
template <int Rows>
struct BlockRanges {
  Segment row[Rows], any, every;
};
template <int Rows>
__device__ void find_ranges(const FlashPlan& p, int64_t row0, bool of_keys, BlockRanges<Rows>& ranges) {
  for (int i = static_cast<int>(threadIdx.x); i < Rows; i += kFlashThreads) {
    const int64_t row = row0 + i;
    ranges.row[i] = of_keys ? keys_of(p, row) : queries_of(p, row);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    Segment any{INT64_MAX, 0}, every{0, INT64_MAX};
    for (const Segment& r : ranges.row) {
      every.first = r.first > every.first ? r.first : every.first;
      every.last = r.last < every.last ? r.last : every.last;
      if (r.first >= r.last) continue;
      any.first = r.first < any.first ? r.first : any.first;
      any.last = r.last > any.last ? r.last : any.last;
    }
    if (any.last == 0) any.first = 0;
    ranges.any = any;
    ranges.every = every;
  }
  __syncthreads();
}

// Whether a row of the block sees what stands at from + column.
template <int Rows>
__device__ __forceinline__ bool sees(const BlockRanges<Rows>& ranges, int64_t from, int row, int column) {
  const Segment s = ranges.row[row];
  return from + column >= s.first && from + column < s.last;
}

// Two neighbouring elements of a row of features.
template <class T>
__device__ __forceinline__ void store_two(T* at, float low, float high) {
  if (reinterpret_cast<uintptr_t>(at) % 4 == 0) {
    *reinterpret_cast<uint32_t*>(at) = pack<T>(low, high);
  } else {
    at[0] = to<T>(low);
    at[1] = to<T>(high);
  }
}

// The warp's 16 rows of an accumulator, times a factor, to rows from `row` on of one head.
template <class T, int D>
__device__ __forceinline__ void store_rows(FlashView y, int64_t head, int64_t row, int64_t tokens,
                                           const float (&c)[D / 8][4], float upper, float lower) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, p = lane % 4;
  T* to = static_cast<T*>(y.data) + head * y.head + 2 * p;
#pragma unroll
  for (int n = 0; n < D / 8; ++n) {
    if (row + g < tokens) store_two(to + (row + g) * y.token + 8 * n, c[n][0] * upper, c[n][1] * upper);
    if (row + g + 8 < tokens) store_two(to + (row + g + 8) * y.token + 8 * n, c[n][2] * lower, c[n][3] * lower);
  }
}

// 2 to the power of x, within 2 units in the last place; results below the normal numbers are 0.
__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

inline constexpr float kLog2e = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

}  // namespace gestalt::kernels_cuda
