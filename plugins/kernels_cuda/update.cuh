#pragma once

#include <algorithm>
#include <array>

#include "gestalt/abi/optimizer.h"
#include "plugins/kernels_cuda/element_kernel.h"
#include "plugins/kernels_cuda/loop.cuh"
#include "plugins/kernels_cuda/packed.cuh"

// The frame of a weight update: flat vectors, cut by a table of segments with their own weight decay and learning rate.
// A block does a stretch of elements: it looks up which segments meet the stretch, 256 at a time, and each thread does
// its chunks of those. Elements outside all segments stay as they are.
namespace gestalt::kernels_cuda {

inline constexpr uint64_t kParam = 0, kMaster = 1, kGrad = 2;

inline void need_vector(const Plan& plan, uint64_t i, std::string_view name, View param) {
  need_like(plan, plan.in(i), name, param);
  need_ndim(plan, plan.in(i), name, 1);
  need_dim(plan, plan.in(i), name, 0, param.dim(0));
}

// segments: number of that input; then follow segment_hyper, scalars and clip.
inline void need_update(const Plan& plan, uint64_t segments) {
  need_float(plan, plan.in(kParam), "param");
  need_ndim(plan, plan.in(kParam), "param", 1);
  if (plan.has_in(kMaster)) need_vector(plan, kMaster, "master", plan.in(kParam));
  need_vector(plan, kGrad, "grad", plan.in(kParam));
  const View table = plan.in(segments), hyper = plan.in(segments + 1);
  need_index(plan, table, "segments");
  need_ndim(plan, table, "segments", 2);
  need_dim(plan, table, "segments", 1, 2);
  need_float(plan, hyper, "segment_hyper");
  need_ndim(plan, hyper, "segment_hyper", 2);
  need_dim(plan, hyper, "segment_hyper", 0, table.dim(0));
  need_dim(plan, hyper, "segment_hyper", 1, 2);
  need_float(plan, plan.in(segments + 2), "scalars");
  need_ndim(plan, plan.in(segments + 2), "scalars", 1);
  need_float(plan, plan.in(segments + 3), "clip");
  need_ndim(plan, plan.in(segments + 3), "clip", 0);
}

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

inline constexpr int kStretchChunks = 4;  // of a thread
inline constexpr int64_t kStretch = int64_t{kStretchChunks} * kThreads * kChunk;

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

// A whole chunk where everything is f32 but the parameter, which has kBytes bytes.
template <int kBytes, int kStates, class Rule, class Factors>
__device__ __forceinline__ void update_chunk(const UpdateArgs<kStates>& a, const Rule& rule, const Factors& factors,
                                             int64_t chunk) {
  const int64_t at = chunk * (kChunk * 4), param_at = chunk * (kChunk * kBytes);
  const bool half = a.param.side.dtype == GESTALT_F16;
  Packed<4> master, grad, held[kStates];
  Packed<kBytes> param;
  if (a.master.present)
    master.load(a.master.side.data + at);
  else
    param.load(a.param.side.data + param_at);
  grad.load(a.grad.side.data + at);
#pragma unroll
  for (int k = 0; k < kStates; ++k)
    if (a.state[k].present) held[k].load(a.state[k].side.data + at);
  float w[kChunk], g[kChunk], state[kStates][kChunk] = {};
  if (a.master.present)
    master.unpack(false, w);
  else
    param.unpack(half, w);
  grad.unpack(false, g);
#pragma unroll
  for (int k = 0; k < kStates; ++k)
    if (a.state[k].present) held[k].unpack(false, state[k]);
#pragma unroll
  for (int j = 0; j < kChunk; ++j) {
    float own[kStates];
#pragma unroll
    for (int k = 0; k < kStates; ++k) own[k] = state[k][j];
    rule.one(factors, g[j], w[j], own);
#pragma unroll
    for (int k = 0; k < kStates; ++k) state[k][j] = own[k];
  }
  if (a.master.present) store_packed<4>(a.master.side.data + at, false, w);
  store_packed<kBytes>(a.param.side.data + param_at, half, w);
#pragma unroll
  for (int k = 0; k < kStates; ++k)
    if (a.state[k].present) store_packed<4>(a.state[k].side.data + at, false, state[k]);
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
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kStretch, last = min(a.n, first + kStretch);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int64_t base = 0; base < a.num_segments; base += kThreads) {
    const int64_t s = base + threadIdx.x;
    int64_t begin = 0, end = 0;
    if (s < a.num_segments) {
      begin = load_one<int64_t>(a.segments, s * a.segments_row);
      end = min(begin + load_one<int64_t>(a.segments, s * a.segments_row + a.segments_column), last);
      begin = max(begin, first);
    }
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
      begins[slot] = begin;
      ends[slot] = end;
      decays[slot] = load_one<double>(a.hyper, s * a.hyper_row);
      scales[slot] = load_one<double>(a.hyper, s * a.hyper_row + a.hyper_column);
    }
    __syncthreads();
    for (int hit = 0; hit < total; ++hit) {
      // Whole chunks of the vectors, so that they stay aligned; the segment's ends cut the first and the last.
      const auto factors = rule.template factors<C>(numbers, decays[hit], scales[hit]);
      const int64_t from = begins[hit] / kChunk, to = (ends[hit] + kChunk - 1) / kChunk;
      for (int64_t chunk = from + threadIdx.x; chunk < to; chunk += kThreads) {
        const int64_t begin = max(chunk * kChunk, begins[hit]), end = min(chunk * kChunk + kChunk, ends[hit]);
        if constexpr (kBytes > 0) {
          if (end - begin == kChunk) {
            update_chunk<kBytes>(a, rule, factors, chunk);
            continue;
          }
        }
        update_slowly<C>(a, rule, factors, begin, end);
      }
    }
    __syncthreads();
  }
}

template <class C, int kStates, class Rule>
void update(const Call& call, std::string_view op, const std::array<uint64_t, kStates>& states, uint64_t segments,
            const Rule& rule) {
  const UpdateArgs<kStates> a = update_args<kStates>(call, states, segments);
  if (a.n == 0) return;
  const unsigned blocks = blocks_for(a.n, kStretch);
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
