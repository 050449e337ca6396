#pragma once

#include "plugins/kernels_cuda/loop.cuh"
#include "plugins/kernels_cuda/packed.cuh"

namespace gestalt::kernels_cuda {

// f(in, out) computes one element from arrays of the inputs' and outputs' values.

// Rows of whole chunks of one type: tensors that are one run, repeated rows, halves of rows.
template <int kAll>
struct PackedRows {
  char* data[kAll];
  int64_t row_bytes[kAll];
  uint32_t chunks, row_chunks;
  bool half;
};

template <int kBytes, int kIn, int kOut, class F>
__global__ void __launch_bounds__(kThreads) packed_kernel(const __grid_constant__ PackedRows<kIn + kOut> a, const F f) {
  const uint32_t chunk = blockIdx.x * kThreads + threadIdx.x;
  if (chunk >= a.chunks) return;
  uint32_t row = 0, within = chunk;
  if (a.row_chunks < a.chunks) {
    row = chunk / a.row_chunks;
    within = chunk - row * a.row_chunks;
  }
  constexpr int kHeld = kIn > 0 ? kIn : 1;
  Packed<kBytes> packed[kHeld];
#pragma unroll
  for (int k = 0; k < kIn; ++k)
    packed[k].load(a.data[k] + row * a.row_bytes[k] + static_cast<int64_t>(within) * (kChunk * kBytes));
  float values[kHeld][kChunk], results[kOut][kChunk];
#pragma unroll
  for (int k = 0; k < kIn; ++k) packed[k].unpack(a.half, values[k]);
#pragma unroll
  for (int j = 0; j < kChunk; ++j) {
    float in[kHeld], out[kOut];
#pragma unroll
    for (int k = 0; k < kIn; ++k) in[k] = values[k][j];
    f(in, out);
#pragma unroll
    for (int k = 0; k < kOut; ++k) results[k][j] = out[k];
  }
#pragma unroll
  for (int k = 0; k < kOut; ++k)
    store_packed<kBytes>(
        a.data[kIn + k] + row * a.row_bytes[kIn + k] + static_cast<int64_t>(within) * (kChunk * kBytes), a.half,
        results[k]);
}

// Everything else: one element a thread.
template <class C, int kIn, int kOut, class F>
__global__ void __launch_bounds__(kThreads)
    element_kernel(const __grid_constant__ Loop<kIn + kOut> loop, const __grid_constant__ Sides<kIn + kOut> sides,
                   bool accumulate, const F f) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= loop.numel) return;
  int64_t at[kIn + kOut] = {};
  loop.locate_row(i, loop.ndim, at);
  C in[kIn > 0 ? kIn : 1], out[kOut];
#pragma unroll
  for (int k = 0; k < kIn; ++k) in[k] = load_one<C>(sides.side[k], at[k]);
  f(in, out);
#pragma unroll
  for (int k = 0; k < kOut; ++k) store_one<C>(sides.side[kIn + k], at[kIn + k], out[k], accumulate);
}

// Fills rows and says whether the tensors of the loop have the packed form.
template <int kAll>
bool packed_rows(const Loop<kAll>& loop, const std::array<View, kAll>& all, PackedRows<kAll>* rows) {
  const DType dtype = all[0].dtype();
  const int last = loop.ndim - 1;
  if (!packs(dtype) || last > 1 || loop.shape[last] % kChunk != 0) return false;
  const int64_t size = size_of(dtype);
  for (size_t k = 0; k < static_cast<size_t>(kAll); ++k) {
    if (all[k].dtype() != dtype || !aligned(all[k].template data<void>()) || loop.stride[last][k] != 1) return false;
    rows->data[k] = all[k].template data<char>();
    rows->row_bytes[k] = last == 1 ? loop.stride[0][k] * size : 0;
    if (rows->row_bytes[k] % 16 != 0) return false;
  }
  const int64_t chunks = loop.chunks();
  if (chunks >= int64_t{1} << 32) return false;
  rows->chunks = static_cast<uint32_t>(chunks);
  rows->row_chunks = static_cast<uint32_t>(loop.row_chunks);
  rows->half = dtype == kF16;
  return true;
}

// One chunk a thread, of any types.
template <class C, int kIn, int kOut, class F>
__global__ void __launch_bounds__(kThreads)
    chunk_kernel(const __grid_constant__ Loop<kIn + kOut> loop, const __grid_constant__ Sides<kIn + kOut> sides,
                 int64_t chunks, bool accumulate, const F f) {
  const int64_t chunk = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (chunk >= chunks) return;
  int64_t at[kIn + kOut];
  const int n = loop.locate(chunk, at);
  const int64_t* stride = loop.stride[loop.ndim - 1];
  constexpr int kHeld = kIn > 0 ? kIn : 1;
  Held<C> held[kHeld];
  C values[kHeld][kChunk], results[kOut][kChunk];
#pragma unroll
  for (int k = 0; k < kIn; ++k) fetch(sides.side[k], at[k], stride[k], n, held[k]);
#pragma unroll
  for (int k = 0; k < kIn; ++k) unpack(sides.side[k], at[k], stride[k], n, held[k], values[k]);
#pragma unroll
  for (int j = 0; j < kChunk; ++j) {
    C in[kHeld], out[kOut];
#pragma unroll
    for (int k = 0; k < kIn; ++k) in[k] = values[k][j];
    f(in, out);
#pragma unroll
    for (int k = 0; k < kOut; ++k) results[k][j] = out[k];
  }
#pragma unroll
  for (int k = 0; k < kOut; ++k)
    store_chunk(sides.side[kIn + k], at[kIn + k], stride[kIn + k], n, results[k], accumulate);
}

// f over every element of out[0]'s shape. Inputs of lower rank are repeated over the leading dimensions; out may
// overlay an input, element by element.
template <class C, int kIn, int kOut, class F>
void elementwise(const Call& call, std::string_view op, const std::array<View, kIn>& in,
                 const std::array<View, kOut>& out, bool accumulate, const F& f) {
  constexpr int kAll = kIn + kOut;
  std::array<View, kAll> all;
  std::copy(in.begin(), in.end(), all.begin());
  std::copy(out.begin(), out.end(), all.begin() + kIn);
  const Loop<kAll> loop = make_loop<kAll>(out[0], all);
  if (loop.numel == 0) return;
  if constexpr (std::is_same_v<C, float>) {
    PackedRows<kAll> rows;
    if (!accumulate && packed_rows<kAll>(loop, all, &rows)) {
      const unsigned blocks = blocks_for(rows.chunks);
      if (size_of(all[0].dtype()) == 2)
        packed_kernel<2, kIn, kOut, F><<<blocks, kThreads, 0, stream_of(call)>>>(rows, f);
      else
        packed_kernel<4, kIn, kOut, F><<<blocks, kThreads, 0, stream_of(call)>>>(rows, f);
      return check_launch(op);
    }
  }
  element_kernel<C, kIn, kOut, F>
      <<<blocks_for(loop.numel), kThreads, 0, stream_of(call)>>>(loop, sides_of<kAll>(all), accumulate, f);
  check_launch(op);
}

// The same in chunks for tensors of different types: conversions and sums of gradients.
template <class C, int kIn, int kOut, class F>
void convert(const Call& call, std::string_view op, const std::array<View, kIn>& in, const std::array<View, kOut>& out,
             bool accumulate, const F& f) {
  constexpr int kAll = kIn + kOut;
  std::array<View, kAll> all;
  std::copy(in.begin(), in.end(), all.begin());
  std::copy(out.begin(), out.end(), all.begin() + kIn);
  const Loop<kAll> loop = make_loop<kAll>(out[0], all);
  const int64_t chunks = loop.chunks();
  if (chunks == 0) return;
  chunk_kernel<C, kIn, kOut, F>
      <<<blocks_for(chunks), kThreads, 0, stream_of(call)>>>(loop, sides_of<kAll>(all), chunks, accumulate, f);
  check_launch(op);
}

}  // namespace gestalt::kernels_cuda
