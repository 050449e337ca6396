#pragma once

#include "plugins/kernels_cuda/packed.cuh"
#include "plugins/kernels_cuda/rows.cuh"

// The norms for rows of whole chunks of one type, up to 8192 elements. Forward: a row lives in the registers of a warp
// (up to 1024 elements) or of a block. Backward: each block walks over rows, loads the next while it works on one, and
// keeps its part of the weights' gradients in registers; the parts are added afterwards, in order.
namespace gestalt::kernels_cuda {

inline constexpr int kMostThreads = 512;

struct PackedNorm {
  const char *x, *dy, *w, *b;
  char* y;  // dx in the backward
  float *rstd, *mean;
  int64_t x_row, dy_row, y_row, rstd_step, mean_step;  // rows in bytes
  int64_t rows, n;
  float eps, offset;
  bool half, has_bias;
};

// kWarp: a warp a row, 4 rows a block; else a block a row. Each takes rows in turn and loads the next one early.
template <int kBytes, bool kLayer, bool kWarp, int kHold>
__global__ void __launch_bounds__(kWarp ? 128 : kMostThreads) packed_norm(const __grid_constant__ PackedNorm a) {
  constexpr int kGroup = kWarp ? 32 : kMostThreads;
  const int threads = kWarp ? 32 : static_cast<int>(blockDim.x);
  const int lane = kWarp ? static_cast<int>(threadIdx.x) % 32 : static_cast<int>(threadIdx.x);
  const int n = static_cast<int>(a.n);
  const int64_t step = kWarp ? gridDim.x * 4 : gridDim.x;
  int64_t row = kWarp ? static_cast<int64_t>(blockIdx.x) * 4 + threadIdx.x / 32 : blockIdx.x;
  Packed<kBytes> next[kHold] = {};
  const auto prefetch = [&](int64_t at) {
    if (at >= a.rows) return;
#pragma unroll
    for (int h = 0; h < kHold; ++h)
      if (const int i = (h * threads + lane) * kChunk; i < n) next[h].load(a.x + at * a.x_row + i * kBytes);
  };
  prefetch(row);
  for (; row < a.rows; row += step) {
    float x[kHold][kChunk];
#pragma unroll
    for (int h = 0; h < kHold; ++h) next[h].unpack(a.half, x[h]);
    prefetch(row + step);
    float middle = 0;
    if constexpr (kLayer) {
#pragma unroll
      for (int h = 0; h < kHold; ++h)
#pragma unroll
        for (int j = 0; j < kChunk; ++j) middle += x[h][j];
      middle = group_sum<kGroup>(middle) / static_cast<float>(n);
    }
    float square = 0;
#pragma unroll
    for (int h = 0; h < kHold; ++h) {
      if ((h * threads + lane) * kChunk >= n) continue;
#pragma unroll
      for (int j = 0; j < kChunk; ++j) {
        x[h][j] -= middle;
        square += x[h][j] * x[h][j];
      }
    }
    square = group_sum<kGroup>(square);
    const float scale = 1.0f / sqrtf(square / static_cast<float>(n) + a.eps);
#pragma unroll
    for (int h = 0; h < kHold; ++h) {
      const int i = (h * threads + lane) * kChunk;
      if (i >= n) continue;
      float w[kChunk];
      load_packed<kBytes>(a.w + i * kBytes, a.half, w);
      if (kLayer && a.has_bias) {
        float b[kChunk];
        load_packed<kBytes>(a.b + i * kBytes, a.half, b);
#pragma unroll
        for (int j = 0; j < kChunk; ++j) x[h][j] = x[h][j] * scale * w[j] + b[j];
      } else {
#pragma unroll
        for (int j = 0; j < kChunk; ++j) x[h][j] *= scale * (kLayer ? w[j] : w[j] + a.offset);
      }
      store_packed<kBytes>(a.y + row * a.y_row + i * kBytes, a.half, x[h]);
    }
    if (lane == 0) {
      a.rstd[row * a.rstd_step] = scale;
      if (kLayer) a.mean[row * a.mean_step] = middle;
    }
  }
}

// partial: of each block a row of dw, then (layer) one of db.
template <int kBytes, bool kLayer, int kHold>
__global__ void __launch_bounds__(kMostThreads) packed_norm_bwd(const __grid_constant__ PackedNorm a, float* partial) {
  __shared__ float2 part[2][kMostThreads / 32];
  const int threads = static_cast<int>(blockDim.x), lane = static_cast<int>(threadIdx.x);
  const int warps = threads / 32, n = static_cast<int>(a.n);
  float w[kHold][kChunk] = {}, dw[kHold][kChunk] = {}, db[kHold][kChunk] = {};
  Packed<kBytes> next_x[kHold] = {}, next_d[kHold] = {};
  float next_scale = 0, next_middle = 0;
  const auto prefetch = [&](int64_t row) {
    if (row >= a.rows) return;
#pragma unroll
    for (int h = 0; h < kHold; ++h) {
      const int i = (h * threads + lane) * kChunk;
      if (i >= n) continue;
      next_x[h].load(a.x + row * a.x_row + i * kBytes);
      next_d[h].load(a.dy + row * a.dy_row + i * kBytes);
    }
    next_scale = a.rstd[row * a.rstd_step];
    if (kLayer) next_middle = a.mean[row * a.mean_step];
  };
#pragma unroll
  for (int h = 0; h < kHold; ++h) {
    const int i = (h * threads + lane) * kChunk;
    if (i >= n) continue;
    load_packed<kBytes>(a.w + i * kBytes, a.half, w[h]);
#pragma unroll
    for (int j = 0; j < kChunk; ++j) w[h][j] += a.offset;
  }
  prefetch(blockIdx.x);
  int turn = 0;
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x, turn ^= 1) {
    float x[kHold][kChunk], dy[kHold][kChunk];
    const float scale = next_scale, middle = next_middle;
#pragma unroll
    for (int h = 0; h < kHold; ++h) {
      next_x[h].unpack(a.half, x[h]);
      next_d[h].unpack(a.half, dy[h]);
    }
    prefetch(row + gridDim.x);
    float2 sum{0, 0};  // of dy w, of dy w x
#pragma unroll
    for (int h = 0; h < kHold; ++h)
#pragma unroll
      for (int j = 0; j < kChunk; ++j) {
        if (kLayer) x[h][j] = (x[h][j] - middle) * scale;
        const float along = dy[h][j] * w[h][j];
        sum.x += along;
        sum.y += along * x[h][j];
      }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      sum.x += __shfl_xor_sync(0xffffffffu, sum.x, offset);
      sum.y += __shfl_xor_sync(0xffffffffu, sum.y, offset);
    }
    if (lane % 32 == 0) part[turn][lane / 32] = sum;
    __syncthreads();  // the other half of `part` is free again: all have passed the barrier of the row before
    sum = {0, 0};
    for (int i = 0; i < warps; ++i) {
      sum.x += part[turn][i].x;
      sum.y += part[turn][i].y;
    }
    const float level = kLayer ? sum.x / static_cast<float>(n) : 0;
    const float pull = kLayer ? sum.y / static_cast<float>(n) : sum.y * scale * scale / static_cast<float>(n);
#pragma unroll
    for (int h = 0; h < kHold; ++h) {
      const int i = (h * threads + lane) * kChunk;
#pragma unroll
      for (int j = 0; j < kChunk; ++j) {
        const float d = dy[h][j];
        dw[h][j] += kLayer ? d * x[h][j] : d * x[h][j] * scale;
        if (kLayer) db[h][j] += d;
        dy[h][j] = (d * w[h][j] - level - x[h][j] * pull) * scale;
      }
      if (i < n) store_packed<kBytes>(a.y + row * a.y_row + i * kBytes, a.half, dy[h]);
    }
  }
  float* own = partial + static_cast<int64_t>(blockIdx.x) * (kLayer ? 2 : 1) * n;
#pragma unroll
  for (int h = 0; h < kHold; ++h) {
    const int i = (h * threads + lane) * kChunk;
    if (i >= n) continue;
#pragma unroll
    for (int j = 0; j < kChunk; ++j) {
      own[i + j] = dw[h][j];
      if (kLayer) own[n + i + j] = db[h][j];
    }
  }
}

}  // namespace gestalt::kernels_cuda
