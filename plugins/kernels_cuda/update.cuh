#pragma once

#include <algorithm>
#include <array>

#include "gestalt/abi/optimizer.h"
#include "gestalt/op_plans/update.hpp"
#include "plugins/kernels_cuda/element_kernel.h"
#include "plugins/kernels_cuda/packed.cuh"

// The frame of a weight update: flat vectors, cut by a table of segments with their own weight decay and learning rate.
// A block does stretches of elements in turn: it looks up which segments meet a stretch, 256 at a time, and each thread
// does its groups of those. Elements outside all segments stay as they are.
namespace gestalt::kernels_cuda {

using namespace flat_update;

struct FlatVector {
  Side side;
  int64_t step;
  bool present;
};
inline FlatVector flat_vector(const Call& call, uint64_t i) {
  if (!call.has_in(i)) return {{nullptr, GESTALT_F32, 4}, 0, false};
  return {side_of(call.in(i)), call.in(i).stride(0), true};
}

template <int kStates>
struct UpdateArgs {
  FlatVector param, master, grad, state[kStates];
  Side segments, hyper, scalars, clip;
  int64_t segments_row, segments_column, hyper_row, hyper_column, scalars_step;
  int64_t num_segments, n;
};

template <int kStates>
UpdateArgs<kStates> update_args(const Call& call, const std::array<uint64_t, kStates>& states, uint64_t segments) {
  UpdateArgs<kStates> a;
  a.param = flat_vector(call, kParam);
  a.master = flat_vector(call, kMaster);
  a.grad = flat_vector(call, kGrad);
  for (size_t i = 0; i < kStates; ++i) a.state[i] = flat_vector(call, states[i]);
  const View table = call.in(segments), hyper = call.in(segments + 1), scalars = call.in(segments + 2);
  a.segments = side_of(table);
  a.segments_row = table.stride(0);
  a.segments_column = table.stride(1);
  a.hyper = side_of(hyper);
  a.hyper_row = hyper.stride(0);
  a.hyper_column = hyper.stride(1);
  a.scalars = side_of(scalars);
  a.scalars_step = scalars.stride(0);
  a.clip = side_of(call.in(segments + 3));
  a.num_segments = table.dim(0);
  a.n = call.in(kParam).dim(0);
  return a;
}

inline constexpr int64_t kStretch = int64_t{8} * kThreads;
inline constexpr int64_t kMostUpdateBlocks =
    4 * 132;  // as many as run at once: they move over the vectors side by side

// What a rule may need of the step, computed once a block.
struct StepNumbers {
  double clip, lr, step;
  double scale1, scale2;  // of the moments, where the rule has such
};

// Elements one by one: any types and strides, and the ends of segments.
template <class C, int kStates, class Rule, class Factors>
__device__ __noinline__ void update_slowly(const UpdateArgs<kStates>& a, const Rule& rule, const Factors& factors,
                                           int64_t begin, int64_t end) {
  const FlatVector& weight = a.master.present ? a.master : a.param;
  for (int64_t i = begin; i < end; ++i) {
    C w = load_one<C>(weight.side, i * weight.step), state[kStates];
    const C g = load_one<C>(a.grad.side, i * a.grad.step);
    for (int k = 0; k < kStates; ++k)
      state[k] = a.state[k].present ? load_one<C>(a.state[k].side, i * a.state[k].step) : C(0);
    rule.one(factors, g, w, state);
    store_one<C>(weight.side, i * weight.step, w);
    if (a.master.present) store_one<C>(a.param.side, i * a.param.step, w);
    for (int k = 0; k < kStates; ++k)
      if (a.state[k].present) store_one<C>(a.state[k].side, i * a.state[k].step, state[k]);
  }
}

// Elements of a group, the work of a thread in the fast form: a word of 16 bytes of every f32 vector, so that a warp's
// accesses are whole sectors.
inline constexpr int kGroupSize = 4;

__device__ __forceinline__ void load_group(const FlatVector& v, int64_t group, float (&x)[kGroupSize]) {
  const float4 word = reinterpret_cast<const float4*>(v.side.data)[group];
  x[0] = word.x;
  x[1] = word.y;
  x[2] = word.z;
  x[3] = word.w;
}
__device__ __forceinline__ void store_group(const FlatVector& v, int64_t group, const float (&x)[kGroupSize]) {
  reinterpret_cast<float4*>(v.side.data)[group] = make_float4(x[0], x[1], x[2], x[3]);
}
template <int kBytes>
__device__ __forceinline__ void load_param(const FlatVector& v, int64_t group, float (&x)[kGroupSize]) {
  if constexpr (kBytes == 4) {
    load_group(v, group, x);
  } else {
    const uint2 word = reinterpret_cast<const uint2*>(v.side.data)[group];
    const uint32_t pair[2] = {word.x, word.y};
#pragma unroll
    for (int j = 0; j < kGroupSize; ++j) {
      const auto bits = static_cast<uint16_t>(j % 2 ? pair[j / 2] >> 16 : pair[j / 2]);
      x[j] = v.side.dtype == GESTALT_F16 ? __half2float(__ushort_as_half(bits))
                                         : __uint_as_float(static_cast<uint32_t>(bits) << 16);
    }
  }
}
template <int kBytes>
__device__ __forceinline__ void store_param(const FlatVector& v, int64_t group, const float (&x)[kGroupSize]) {
  if constexpr (kBytes == 4) {
    store_group(v, group, x);
  } else {
    uint32_t pair[2];
#pragma unroll
    for (int j = 0; j < 2; ++j)
      pair[j] = v.side.dtype == GESTALT_F16 ? pair_of(__float2half_rn(x[2 * j]), __float2half_rn(x[2 * j + 1]))
                                            : pair_of(__float2bfloat16_rn(x[2 * j]), __float2bfloat16_rn(x[2 * j + 1]));
    reinterpret_cast<uint2*>(v.side.data)[group] = make_uint2(pair[0], pair[1]);
  }
}

// Whole groups where everything is f32 but the parameter, which has kBytes bytes: `first` and, if below `end`, the one
// kThreads further, whose loads are in flight together.
template <int kBytes, int kStates, class Rule, class Factors>
__device__ __forceinline__ void update_groups(const UpdateArgs<kStates>& a, const Rule& rule, const Factors& factors,
                                              int64_t first, int64_t end) {
  constexpr int kFlight = 2;
  float w[kFlight][kGroupSize], g[kFlight][kGroupSize], state[kFlight][kStates][kGroupSize] = {};
#pragma unroll
  for (int u = 0; u < kFlight; ++u) {
    const int64_t group = first + u * kThreads;
    if (group >= end) continue;
    load_group(a.grad, group, g[u]);
#pragma unroll
    for (int k = 0; k < kStates; ++k)
      if (a.state[k].present) load_group(a.state[k], group, state[u][k]);
    if (a.master.present)
      load_group(a.master, group, w[u]);
    else
      load_param<kBytes>(a.param, group, w[u]);
  }
#pragma unroll
  for (int u = 0; u < kFlight; ++u) {
    const int64_t group = first + u * kThreads;
    if (group >= end) continue;
#pragma unroll
    for (int j = 0; j < kGroupSize; ++j) {
      float own[kStates];
#pragma unroll
      for (int k = 0; k < kStates; ++k) own[k] = state[u][k][j];
      rule.one(factors, g[u][j], w[u][j], own);
#pragma unroll
      for (int k = 0; k < kStates; ++k) state[u][k][j] = own[k];
    }
    if (a.master.present) store_group(a.master, group, w[u]);
    store_param<kBytes>(a.param, group, w[u]);
#pragma unroll
    for (int k = 0; k < kStates; ++k)
      if (a.state[k].present) store_group(a.state[k], group, state[u][k]);
  }
}

// Rule: prepare(StepNumbers&); factors<C>(numbers, decay, lr_scale); one(factors, grad, weight, states). kBytes: of
// the parameter in the fast form, 0 in the one for everything.
template <class C, int kBytes, int kStates, class Rule>
__global__ void __launch_bounds__(kThreads)
    update_kernel(const __grid_constant__ UpdateArgs<kStates> a, const Rule rule) {
  __shared__ StepNumbers numbers;
  __shared__ int hits[kThreads / 32];
  __shared__ int64_t begins[kThreads], ends[kThreads];
  __shared__ double decays[kThreads], scales[kThreads];
  const double clip = load_one<double>(a.clip, 0);
  if (clip < 0) return;  // a gradient that is not finite
  if (threadIdx.x == 0) {
    numbers.clip = clip;
    numbers.lr = load_one<double>(a.scalars, GESTALT_SCALAR_LR * a.scalars_step);
    numbers.step = load_one<double>(a.scalars, GESTALT_SCALAR_STEP * a.scalars_step);
    rule.prepare(numbers);
  }
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const auto bounds = [&](int64_t s, int64_t* begin, int64_t* end) {
    *begin = *end = 0;
    if (s >= a.num_segments) return;
    *begin = load_one<int64_t>(a.segments, s * a.segments_row);
    *end = *begin + load_one<int64_t>(a.segments, s * a.segments_row + a.segments_column);
  };
  int64_t own_begin, own_end;  // of the first 256 segments
  bounds(threadIdx.x, &own_begin, &own_end);
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kStretch; first < a.n; first += gridDim.x * kStretch) {
    const int64_t last = min(a.n, first + kStretch);
    for (int64_t base = 0; base < a.num_segments; base += kThreads) {
      int64_t begin = own_begin, end = own_end;
      if (base > 0) bounds(base + threadIdx.x, &begin, &end);
      begin = max(begin, first);
      end = min(end, last);
      const unsigned meets = __ballot_sync(0xffffffffu, begin < end);
      if (lane == 0) hits[warp] = __popc(meets);
      __syncthreads();
      int before = 0, total = 0;
      for (int i = 0; i < kThreads / 32; ++i) {
        if (i < warp) before += hits[i];
        total += hits[i];
      }
      if (begin < end) {
        const int slot = before + __popc(meets & ((1u << lane) - 1));
        const int64_t s = base + threadIdx.x;
        begins[slot] = begin;
        ends[slot] = end;
        decays[slot] = load_one<double>(a.hyper, s * a.hyper_row);
        scales[slot] = load_one<double>(a.hyper, s * a.hyper_row + a.hyper_column);
      }
      __syncthreads();
      for (int hit = 0; hit < total; ++hit) {
        const auto factors = rule.template factors<C>(numbers, decays[hit], scales[hit]);
        if constexpr (kBytes > 0) {
          // Whole groups of the vectors, so that they stay aligned; what the segment's ends cut goes one by one.
          const int64_t from = (begins[hit] + kGroupSize - 1) / kGroupSize, to = ends[hit] / kGroupSize;
          for (int64_t group = from + threadIdx.x; group < to; group += 2 * kThreads)
            update_groups<kBytes>(a, rule, factors, group, to);
          if (threadIdx.x == 0) {
            const int64_t head = min(from * kGroupSize, ends[hit]);
            update_slowly<C>(a, rule, factors, begins[hit], head);
            update_slowly<C>(a, rule, factors, max(to * kGroupSize, head), ends[hit]);
          }
        } else {
          for (int64_t i = begins[hit] + threadIdx.x; i < ends[hit]; i += kThreads)
            update_slowly<C>(a, rule, factors, i, i + 1);
        }
      }
      __syncthreads();
    }
  }
}

template <class C, int kStates, class Rule>
void update(const Call& call, std::string_view op, const std::array<uint64_t, kStates>& states, uint64_t segments,
            const Rule& rule) {
  const UpdateArgs<kStates> a = update_args<kStates>(call, states, segments);
  if (a.n == 0) return;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(blocks_for(a.n, kStretch), kMostUpdateBlocks));
  cudaStream_t stream = stream_of(call);
  if constexpr (std::is_same_v<C, float>) {
    const auto runs = [](const FlatVector& v, DType dtype) {
      return !v.present || (v.side.dtype == dtype && v.step == 1 && aligned(v.side.data));
    };
    bool fast =
        packs(a.param.side.dtype) && runs(a.param, a.param.side.dtype) && runs(a.master, kF32) && runs(a.grad, kF32);
    for (const FlatVector& state : a.state) fast = fast && runs(state, kF32);
    if (fast) {
      if (a.param.side.size == 2)
        update_kernel<C, 2, kStates, Rule><<<blocks, kThreads, 0, stream>>>(a, rule);
      else
        update_kernel<C, 4, kStates, Rule><<<blocks, kThreads, 0, stream>>>(a, rule);
      return check_launch(op);
    }
  }
  update_kernel<C, 0, kStates, Rule><<<blocks, kThreads, 0, stream>>>(a, rule);
  check_launch(op);
}

}  // namespace gestalt::kernels_cuda
