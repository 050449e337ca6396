#pragma once

#include "plugins/kernels_cuda/element_kernel.h"
#include "plugins/kernels_cuda/loop.cuh"

// Work on rows, the last dimension. A group of kGroup threads does one row: a warp, or the whole block.
namespace gestalt::kernels_cuda {

// What lane xor offset holds. A struct has its own exchanged(offset).
template <class T>
__device__ __forceinline__ T exchanged(const T& x, int offset) {
  if constexpr (std::is_arithmetic_v<T>)
    return __shfl_xor_sync(0xffffffffu, x, offset);
  else
    return x.exchanged(offset);
}

// All threads of the group get the result; the order of the operations is fixed. op must commute.
template <int kGroup, class T, class Op>
__device__ __forceinline__ T group_reduce(T x, Op op) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x = op(x, exchanged(x, offset));
  if constexpr (kGroup > 32) {
    __shared__ alignas(16) unsigned char bytes[sizeof(T) * 32];
    T* part = reinterpret_cast<T*>(bytes);
    const int warps = static_cast<int>(blockDim.x) / 32;
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    x = part[0];
    for (int i = 1; i < warps; ++i) x = op(x, part[i]);
    __syncthreads();
  }
  return x;
}

struct Plus {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
template <int kGroup, class T>
__device__ __forceinline__ T group_sum(T x) {
  return group_reduce<kGroup>(x, Plus());
}

// A running log sum exp: log(sum) + top.
template <class C>
struct Lse {
  C top = -infinity<C>();
  C sum = C(0);

  __device__ __forceinline__ void add(const C (&x)[kChunk]) {
    C high = x[0];
#pragma unroll
    for (int j = 1; j < kChunk; ++j) high = x[j] > high ? x[j] : high;
    if (high > top) {
      sum *= exp_of(top - high);
      top = high;
    }
    if (top == -infinity<C>()) {
      // Nothing but -infinity so far, or a NaN that must not get lost.
#pragma unroll
      for (int j = 0; j < kChunk; ++j)
        if (x[j] != x[j]) sum = x[j];
      return;
    }
#pragma unroll
    for (int j = 0; j < kChunk; ++j) sum += exp_of(x[j] - top);
  }
  __device__ __forceinline__ Lse exchanged(int offset) const {
    Lse other;
    other.top = __shfl_xor_sync(0xffffffffu, top, offset);
    other.sum = __shfl_xor_sync(0xffffffffu, sum, offset);
    return other;
  }
  // As the reference: an infinite top is the answer itself.
  __device__ __forceinline__ C value() const { return top - top != C(0) && sum == sum ? top : top + log(sum); }
};
struct Join {
  template <class C>
  __device__ Lse<C> operator()(const Lse<C>& a, const Lse<C>& b) const {
    Lse<C> out;
    out.top = a.top > b.top ? a.top : b.top;
    out.sum = (a.top == out.top ? a.sum : a.sum * exp_of(a.top - out.top)) +
              (b.top == out.top ? b.sum : b.sum * exp_of(b.top - out.top));
    return out;
  }
};
template <int kGroup, class C>
__device__ __forceinline__ Lse<C> group_lse(const Lse<C>& x) {
  return group_reduce<kGroup>(x, Join());
}

// Rows of K tensors: of rank ndim, or of rank ndim - 1 with one number a row.
template <int K>
struct Rows {
  Loop<K> loop;
  int64_t count, n;
  int64_t step[K];
  Sides<K> sides;
};

template <int K>
Rows<K> make_rows(View shape_of, const std::array<View, K>& views) {
  Rows<K> rows;
  const int leading = shape_of.ndim() - 1;
  for (int d = 0; d < leading; ++d) {
    std::array<int64_t, K> strides;
    for (size_t k = 0; k < K; ++k) strides[k] = views[k].stride(d);
    rows.loop.append(shape_of.dim(d), strides);
  }
  rows.loop.close();
  rows.count = rows.loop.numel;
  rows.n = shape_of.dim(-1);
  for (size_t k = 0; k < K; ++k) rows.step[k] = views[k].ndim() == shape_of.ndim() ? views[k].stride(-1) : 0;
  rows.sides = sides_of<K>(views);
  return rows;
}

// Where one row lies.
template <class C, int K, int kGroup>
struct Row {
  const Rows<K>& rows;
  int64_t index;
  int lane;
  int64_t at[K];

  __device__ __forceinline__ Row(const Rows<K>& all, int64_t row, int thread) : rows(all), index(row), lane(thread) {
#pragma unroll
    for (int k = 0; k < K; ++k) at[k] = 0;
    rows.loop.locate_row(row, rows.loop.ndim, at);
  }
  __device__ __forceinline__ void load(int k, int64_t i, C (&x)[kChunk], C beyond = C(0)) const {
    load_chunk(rows.sides.side[k], at[k] + i * rows.step[k], rows.step[k], count(i), x, beyond);
  }
  __device__ __forceinline__ void store(int k, int64_t i, C (&x)[kChunk]) const {
    store_chunk(rows.sides.side[k], at[k] + i * rows.step[k], rows.step[k], count(i), x);
  }
  __device__ __forceinline__ int count(int64_t i) const {
    return rows.n - i < kChunk ? static_cast<int>(rows.n - i) : kChunk;
  }
  template <class F>
  __device__ __forceinline__ void each(F f) const {
    for (int64_t i = lane * kChunk; i < rows.n; i += kGroup * kChunk) f(i);
  }
  // The number of the row in a tensor that has one a row.
  __device__ __forceinline__ C one(int k) const { return load_one<C>(rows.sides.side[k], at[k]); }
  template <class V>
  __device__ __forceinline__ void put(int k, V x) const {
    if (lane == 0) store_one<V>(rows.sides.side[k], at[k], x);
  }
};

template <class C, int K, int kGroup, class Op>
__global__ void __launch_bounds__(kThreads) row_kernel(const __grid_constant__ Rows<K> rows, const Op op) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / kGroup) + threadIdx.x / kGroup;
  if (row >= rows.count) return;
  op(Row<C, K, kGroup>(rows, row, static_cast<int>(threadIdx.x) % kGroup));
}

// op(row) for every row.
template <class C, int K, class Op>
void each_row(const Call& call, std::string_view name, const Rows<K>& rows, const Op& op) {
  if (rows.count == 0) return;
  if (rows.n <= 1024)
    row_kernel<C, K, 32, Op><<<blocks_for(rows.count, kThreads / 32), kThreads, 0, stream_of(call)>>>(rows, op);
  else
    row_kernel<C, K, kThreads, Op><<<blocks_for(rows.count, 1), kThreads, 0, stream_of(call)>>>(rows, op);
  check_launch(name);
}

inline void need_rows(const Plan& plan, View x, std::string_view name) {
  need_float(plan, x, name);
  if (x.ndim() < 1) throw InvalidArgument(place(plan) + std::string(name) + ": no dimension, got " + describe(x));
}

// One number a row: x without its last dimension.
inline void need_statistics(const Plan& plan, View x, View statistics, std::string_view name) {
  need_like(plan, statistics, name, x);
  need_ndim(plan, statistics, name, x.ndim() - 1);
  for (int d = 0; d + 1 < x.ndim(); ++d) need_dim(plan, statistics, name, d, x.dim(d));
}

}  // namespace gestalt::kernels_cuda
