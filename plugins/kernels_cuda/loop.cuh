#pragma once

#include <array>
#include <cstdint>

#include "plugins/kernels_cuda/element.cuh"
#include "plugins/kernels_cuda/launch.h"

// Iteration over K tensors of one shape by strides, in chunks of eight elements along the innermost dimension.
// Neighbouring dimensions that are one run in every tensor are merged on the host, so contiguous tensors become one
// row.
namespace gestalt::kernels_cuda {

template <int K>
struct Loop {
  int ndim = 0; /* at least 1 once closed */
  int64_t numel = 1;
  int64_t row_chunks = 1; /* chunks of the innermost dimension */
  int64_t shape[GESTALT_MAX_NDIM] = {};
  int64_t stride[GESTALT_MAX_NDIM][K] = {};

  void append(int64_t size, const std::array<int64_t, K>& strides) {
    numel *= size;
    if (size == 1) return;
    if (ndim > 0) {
      bool merges = true;
      for (int k = 0; k < K; ++k) merges = merges && stride[ndim - 1][k] == strides[static_cast<size_t>(k)] * size;
      if (merges) {
        shape[ndim - 1] *= size;
        for (int k = 0; k < K; ++k) stride[ndim - 1][k] = strides[static_cast<size_t>(k)];
        return;
      }
    }
    shape[ndim] = size;
    for (int k = 0; k < K; ++k) stride[ndim][k] = strides[static_cast<size_t>(k)];
    ++ndim;
  }
  void close() {
    if (ndim == 0) {
      ndim = 1;
      shape[0] = 1;
      for (int k = 0; k < K; ++k) stride[0][k] = 1;
    }
    row_chunks = (shape[ndim - 1] + kChunk - 1) / kChunk;
  }
  int64_t chunks() const { return numel == 0 ? 0 : numel / shape[ndim - 1] * row_chunks; }

  // Offsets of the first element of a chunk; returns how many elements it has.
  __device__ __forceinline__ int locate(int64_t chunk, int64_t (&offset)[K]) const {
    int64_t row = 0, within = chunk;
    if (ndim > 1) {
      row = divide(chunk, row_chunks);
      within = chunk - row * row_chunks;
    }
    const int64_t first = within * kChunk;
#pragma unroll
    for (int k = 0; k < K; ++k) offset[k] = first * stride[ndim - 1][k];
    locate_row(row, ndim - 1, offset);
    const int64_t left = shape[ndim - 1] - first;
    return left < kChunk ? static_cast<int>(left) : kChunk;
  }
  // Adds the offsets of index `row` of the first `dims` dimensions.
  __device__ __forceinline__ void locate_row(int64_t row, int dims, int64_t (&offset)[K]) const {
    for (int d = dims - 1; d > 0; --d) {
      const int64_t above = divide(row, shape[d]), index = row - above * shape[d];
#pragma unroll
      for (int k = 0; k < K; ++k) offset[k] += index * stride[d][k];
      row = above;
    }
    if (dims > 0) {
#pragma unroll
      for (int k = 0; k < K; ++k) offset[k] += row * stride[0][k];
    }
  }
  // Division of 64 bits costs far more than that of 32.
  static __device__ __forceinline__ int64_t divide(int64_t a, int64_t b) {
    if (((a | b) >> 32) == 0) return static_cast<int64_t>(static_cast<uint32_t>(a) / static_cast<uint32_t>(b));
    return a / b;
  }
};

// Strides of each view seen in the dimensions of `shape_of`: a shorter view is repeated over the leading dimensions.
template <int K>
Loop<K> make_loop(View shape_of, const std::array<View, K>& views, int ndim) {
  Loop<K> loop;
  for (int d = 0; d < ndim; ++d) {
    std::array<int64_t, K> strides;
    for (size_t k = 0; k < K; ++k) {
      const int own = d - (shape_of.ndim() - views[k].ndim());
      strides[k] = own < 0 ? 0 : views[k].stride(own);
    }
    loop.append(shape_of.dim(d), strides);
  }
  loop.close();
  return loop;
}
template <int K>
Loop<K> make_loop(View shape_of, const std::array<View, K>& views) {
  return make_loop<K>(shape_of, views, shape_of.ndim());
}

template <int K>
struct Sides {
  Side side[K];
};
template <int K>
Sides<K> sides_of(const std::array<View, K>& views) {
  Sides<K> sides;
  for (size_t k = 0; k < K; ++k) sides.side[k] = side_of(views[k]);
  return sides;
}

}  // namespace gestalt::kernels_cuda
