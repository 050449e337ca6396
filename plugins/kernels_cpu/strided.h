#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "gestalt/view.hpp"

// Iteration over K tensors of one shape by strides. Neighbouring dimensions that are one run in every tensor are merged
// first, so contiguous tensors become one long row.
namespace gestalt::kernels_cpu {

template <int K>
struct Loop {
  int ndim = 0; /* at least 1 */
  int64_t numel = 1;
  std::array<int64_t, GESTALT_MAX_NDIM> shape{};
  std::array<std::array<int64_t, K>, GESTALT_MAX_NDIM> stride{};

  void append(int64_t size, const std::array<int64_t, K>& strides) {
    numel *= size;
    if (size == 1) return;
    if (ndim > 0) {
      auto& last = stride[static_cast<size_t>(ndim - 1)];
      bool merges = true;
      for (size_t k = 0; k < K; ++k) merges = merges && last[k] == strides[k] * size;
      if (merges) {
        shape[static_cast<size_t>(ndim - 1)] *= size;
        last = strides;
        return;
      }
    }
    shape[static_cast<size_t>(ndim)] = size;
    stride[static_cast<size_t>(ndim)] = strides;
    ++ndim;
  }
  void close() {
    if (ndim > 0) return;
    ndim = 1;
    shape[0] = 1;
    stride[0] = {};
  }
  const std::array<int64_t, K>& inner_stride() const { return stride[static_cast<size_t>(ndim - 1)]; }
};

// Strides of `view` seen in the dimensions of `shape_of`: a shorter view is repeated over the leading dimensions.
template <int K>
Loop<K> make_loop(View shape_of, const std::array<View, K>& views) {
  Loop<K> loop;
  for (int d = 0; d < shape_of.ndim(); ++d) {
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

// Calls f(offsets, n) for runs along the innermost dimension that cover elements [begin, end) in row-major order; no
// run is longer than `longest`. offsets are in elements, per tensor.
template <int K, class F>
void for_runs(const Loop<K>& loop, int64_t begin, int64_t end, int64_t longest, F&& f) {
  if (begin >= end) return;
  const size_t last = static_cast<size_t>(loop.ndim - 1);
  std::array<int64_t, GESTALT_MAX_NDIM> index{};
  int64_t rest = begin;
  for (size_t d = last + 1; d-- > 0;) {
    index[d] = rest % loop.shape[d];
    rest /= loop.shape[d];
  }
  std::array<int64_t, K> offset{};
  for (size_t d = 0; d <= last; ++d)
    for (size_t k = 0; k < K; ++k) offset[k] += index[d] * loop.stride[d][k];
  for (int64_t at = begin; at < end;) {
    const int64_t n = std::min({longest, end - at, loop.shape[last] - index[last]});
    f(offset, n);
    at += n;
    index[last] += n;
    for (size_t k = 0; k < K; ++k) offset[k] += n * loop.stride[last][k];
    for (size_t d = last; d > 0 && index[d] == loop.shape[d]; --d) {
      index[d] = 0;
      ++index[d - 1];
      for (size_t k = 0; k < K; ++k) offset[k] += loop.stride[d - 1][k] - loop.shape[d] * loop.stride[d][k];
    }
  }
}

// Offset of flat index i in the first `ndim` dimensions of a view (row-major).
inline int64_t offset_of(View view, int ndim, int64_t i) {
  int64_t offset = 0;
  for (int d = ndim - 1; d >= 0; --d) {
    offset += i % view.dim(d) * view.stride(d);
    i /= view.dim(d);
  }
  return offset;
}

}  // namespace gestalt::kernels_cpu
