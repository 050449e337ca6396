#pragma once

#include "plugins/kernels_cuda/loop.cuh"

namespace gestalt::kernels_cuda {

// One chunk a thread. f(in, out) computes one element from arrays of the inputs' and outputs' values.
template <class C, int kIn, int kOut, class F>
__global__ void __launch_bounds__(kThreads)
    elementwise_kernel(const __grid_constant__ Loop<kIn + kOut> loop, const __grid_constant__ Sides<kIn + kOut> sides,
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
  const int64_t chunks = loop.chunks();
  if (chunks == 0) return;
  elementwise_kernel<C, kIn, kOut, F>
      <<<blocks_for(chunks), kThreads, 0, stream_of(call)>>>(loop, sides_of<kAll>(all), chunks, accumulate, f);
  check_launch(op);
}

}  // namespace gestalt::kernels_cuda
