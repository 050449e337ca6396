#pragma once

#include "plugins/kernels_cuda/attention_shape.cuh"

// Square tiles of the plain attention: rows of 32 tokens (16 in f64) in shared memory, one element of padding a row.
namespace gestalt::kernels_cuda {

inline constexpr int kTileThreads = 128;

template <class C>
struct Tile {
  static constexpr int kSize = sizeof(C) == 8 ? 16 : 32;
};

// Tokens [first, first + kSize) of one head; those beyond `tokens` become 0.
template <class C>
__device__ __forceinline__ void load_tile(const Heads& x, int first, int tokens, int head, int size, C* to) {
  const int chunks = (size + kChunk - 1) / kChunk;
  for (int item = static_cast<int>(threadIdx.x); item < Tile<C>::kSize * chunks; item += kTileThreads) {
    const int row = item / chunks, column = item % chunks * kChunk;
    const int n = min(kChunk, size - column);
    C value[kChunk] = {};
    if (first + row < tokens)
      load_chunk(x.side, (first + row) * x.token + head * x.head + column * x.step, x.step, n, value);
#pragma unroll
    for (int j = 0; j < kChunk; ++j)
      if (j < n) to[row * (size + 1) + column + j] = value[j];
  }
}

// y[i, j] = sum over c of a[i, c] b[j, c]; rows of y are kSize + 1 apart. A thread does a few rows and columns.
template <class C>
__device__ __forceinline__ void products(const C* a, const C* b, int size, C* y) {
  constexpr int kTile = Tile<C>::kSize, kColumns = 8;  // threads side by side
  constexpr int kRows = kTile / (kTileThreads / kColumns), kOwn = kTile / kColumns;
  const int row = static_cast<int>(threadIdx.x) / kColumns * kRows, column = static_cast<int>(threadIdx.x) % kColumns;
  C sum[kRows][kOwn] = {};
  for (int c = 0; c < size; ++c) {
    C left[kRows], right[kOwn];
#pragma unroll
    for (int i = 0; i < kRows; ++i) left[i] = a[(row + i) * (size + 1) + c];
#pragma unroll
    for (int j = 0; j < kOwn; ++j) right[j] = b[(column + j * kColumns) * (size + 1) + c];
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kOwn; ++j) sum[i][j] += left[i] * right[j];
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kOwn; ++j) y[(row + i) * (kTile + 1) + column + j * kColumns] = sum[i][j];
}

// y[i, c] += sum over j of p[i, j] x[j, c], or of p[j, i] where kTransposed; rows of y and x are size + 1 apart.
template <class C, bool kTransposed = false>
__device__ __forceinline__ void add_weighted(const C* p, const C* x, int size, C* y) {
  constexpr int kTile = Tile<C>::kSize, kColumns = 8, kOwn = 4;
  constexpr int kRows = kTile / (kTileThreads / kColumns);
  const int row = static_cast<int>(threadIdx.x) / kColumns * kRows;
  for (int c = static_cast<int>(threadIdx.x) % kColumns; c < size; c += kColumns * kOwn) {
    C sum[kRows][kOwn] = {};
    for (int j = 0; j < kTile; ++j) {
      C left[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        left[i] = kTransposed ? p[j * (kTile + 1) + row + i] : p[(row + i) * (kTile + 1) + j];
#pragma unroll
      for (int u = 0; u < kOwn; ++u) {
        const int column = c + u * kColumns;
        const C right = column < size ? x[j * (size + 1) + column] : C(0);
#pragma unroll
        for (int i = 0; i < kRows; ++i) sum[i][u] += left[i] * right;
      }
    }
#pragma unroll
    for (int u = 0; u < kOwn; ++u) {
      const int column = c + u * kColumns;
      if (column >= size) continue;
#pragma unroll
      for (int i = 0; i < kRows; ++i) y[(row + i) * (size + 1) + column] += sum[i][u];
    }
  }
}

// The least range that holds those of all threads of the block.
struct Span {
  int begin, end;
};
__device__ __forceinline__ Span span_of(const Seen& seen) {
  const bool any = seen.begin < seen.end;
  const auto low = [](int x, int y) { return x < y ? x : y; };
  const auto high = [](int x, int y) { return x > y ? x : y; };
  return {group_reduce<kTileThreads>(any ? seen.begin : 0x7fffffff, low),
          group_reduce<kTileThreads>(any ? seen.end : 0, high)};
}

// Raises a kernel's limit of shared memory, or declines heads that are too large for it.
template <class C, class K>
void prepare_tiles(const Plan& plan, K* kernel, size_t bytes, int64_t d, int64_t e) {
  constexpr size_t kMost = 227 * 1024;
  if (bytes > kMost)
    throw Unsupported(place(plan) + "q: heads of " + std::to_string(d) + " and " + std::to_string(e) +
                      " elements do not fit into shared memory, which would need " + std::to_string(bytes) +
                      " bytes of " + std::to_string(kMost));
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
             plan.op());
}

}  // namespace gestalt::kernels_cuda
