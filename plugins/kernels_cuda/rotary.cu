#include "gestalt/op_plans/rotary.hpp"
#include "plugins/kernels_cuda/element_kernel.h"
#include "plugins/kernels_cuda/loop.cuh"
#include "plugins/kernels_cuda/packed.cuh"

// A block takes tokens in turn; the cosines and sines of a token are computed once, for all heads.
namespace gestalt::kernels_cuda {
namespace {

constexpr int64_t kMostDims = 1024;

struct RotaryArgs {
  Side x, y, by;  // by: positions or table
  int64_t x_token, x_head, x_step, y_token, y_head, y_step, by_row, by_column;
  int64_t tokens, heads, size, half;
  double theta, sense;
  bool interleaved, by_table;
};

__device__ __forceinline__ void turn_of(double turns, float* cosine, float* sine) {
  // The whole turns go in double; what is left fits a float.
  const float rest = static_cast<float>(2 * (turns - rint(turns)));
  sincospif(rest, sine, cosine);
}
__device__ __forceinline__ void turn_of(double turns, double* cosine, double* sine) {
  sincospi(2 * (turns - rint(turns)), sine, cosine);
}

// Tokens of which the cosines and sines are computed together.
constexpr int kTogether = 4;

// kBytes: of elements whose halves of heads are whole aligned chunks; 0: any other form.
template <class C, int kBytes>
__global__ void __launch_bounds__(kThreads) rotary(const __grid_constant__ RotaryArgs a) {
  extern __shared__ double shared[];
  double* turns = shared;  // per position, of each pair
  C* cosines = reinterpret_cast<C*>(turns + (a.by_table ? 0 : a.half));
  C* sines = cosines + kTogether * a.half;
  if (!a.by_table)
    for (int64_t i = threadIdx.x; i < a.half; i += kThreads)
      turns[i] = pow(a.theta, -static_cast<double>(i) / static_cast<double>(a.half)) / 6.283185307179586477;
  const int half = static_cast<int>(a.half);
  const int64_t step = a.interleaved ? 2 : 1, other = a.interleaved ? 1 : a.half;
  const bool is_half = a.x.dtype == GESTALT_F16;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kTogether; first < a.tokens;
       first += static_cast<int64_t>(gridDim.x) * kTogether) {
    const int together = static_cast<int>(min(int64_t{kTogether}, a.tokens - first));
    __syncthreads();
    for (int item = static_cast<int>(threadIdx.x); item < together * half; item += kThreads) {
      const int64_t t = first + item / half;
      const int i = item % half;
      C cosine, sine;
      if (a.by_table) {
        cosine = load_one<C>(a.by, t * a.by_row + i * a.by_column);
        sine = load_one<C>(a.by, t * a.by_row + (half + i) * a.by_column);
      } else {
        turn_of(load_one<double>(a.by, t * a.by_row) * turns[i], &cosine, &sine);
      }
      cosines[item] = cosine;
      sines[item] = sine * static_cast<C>(a.sense);
    }
    __syncthreads();
    // Units of work of a head: chunks of pairs, then of the rest; single pairs and elements in the other form.
    constexpr int kUnit = kBytes > 0 ? kChunk : 1;
    const int pair_units = half / kUnit, rest_units = static_cast<int>(a.size - 2 * a.half) / kUnit;
    const int head_units = pair_units + rest_units, token_units = static_cast<int>(a.heads) * head_units;
    for (int item = static_cast<int>(threadIdx.x); item < together * token_units; item += kThreads) {
      const int token = item / token_units, head = item % token_units / head_units, unit = item % head_units;
      const int64_t from = (first + token) * a.x_token + head * a.x_head;
      const int64_t to = (first + token) * a.y_token + head * a.y_head;
      const C* cosine = cosines + token * half + unit * kUnit;
      const C* sine = sines + token * half + unit * kUnit;
      if (unit >= pair_units) {
        const int64_t at = 2 * a.half + (unit - pair_units) * kUnit;
        if constexpr (kBytes > 0) {
          Packed<kBytes> packed;
          packed.load(a.x.data + (from + at) * kBytes);
          packed.store(a.y.data + (to + at) * kBytes);
        } else {
          store_one<C>(a.y, to + at * a.y_step, load_one<C>(a.x, from + at * a.x_step));
        }
      } else if constexpr (kBytes > 0) {
        const int64_t u_at = unit * kChunk, v_at = u_at + a.half;
        Packed<kBytes> u_packed, v_packed;
        u_packed.load(a.x.data + (from + u_at) * kBytes);
        v_packed.load(a.x.data + (from + v_at) * kBytes);
        float u[kChunk], v[kChunk];
        u_packed.unpack(is_half, u);
        v_packed.unpack(is_half, v);
#pragma unroll
        for (int j = 0; j < kChunk; ++j) {
          const float c = static_cast<float>(cosine[j]), s = static_cast<float>(sine[j]), p = u[j], q = v[j];
          u[j] = p * c - q * s;
          v[j] = p * s + q * c;
        }
        store_packed<kBytes>(a.y.data + (to + u_at) * kBytes, is_half, u);
        store_packed<kBytes>(a.y.data + (to + v_at) * kBytes, is_half, v);
      } else {
        const int64_t u_at = unit * step, v_at = u_at + other;
        const C p = load_one<C>(a.x, from + u_at * a.x_step), q = load_one<C>(a.x, from + v_at * a.x_step);
        store_one<C>(a.y, to + u_at * a.y_step, p * *cosine - q * *sine);
        store_one<C>(a.y, to + v_at * a.y_step, p * *sine + q * *cosine);
      }
    }
  }
}

class Rotary : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.rotary";

  explicit Rotary(Plan plan) : p_(plan) {
    if (p_.dims > kMostDims)
      throw Unsupported(place(plan) + "dims: got " + std::to_string(p_.dims) + ", expected at most " +
                        std::to_string(kMostDims));
    run_ = for_compute_type(plan.in(0).dtype(), &Rotary::run_as<float>, &Rotary::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), y = call.out(0), by = call.in(p_.by_table ? 2 : 1);
    if (x.numel() == 0) return;
    const int64_t half = p_.dims / 2;
    const RotaryArgs a{.x = side_of(x),
                       .y = side_of(y),
                       .by = side_of(by),
                       .x_token = x.stride(0),
                       .x_head = x.stride(1),
                       .x_step = x.stride(2),
                       .y_token = y.stride(0),
                       .y_head = y.stride(1),
                       .y_step = y.stride(2),
                       .by_row = by.stride(0),
                       .by_column = p_.by_table ? by.stride(1) : 0,
                       .tokens = x.dim(0),
                       .heads = x.dim(1),
                       .size = x.dim(2),
                       .half = half,
                       .theta = p_.theta,
                       .sense = p_.sense,
                       .interleaved = p_.interleaved,
                       .by_table = p_.by_table};
    const size_t shared = static_cast<size_t>(half) * ((p_.by_table ? 0 : sizeof(double)) + kTogether * 2 * sizeof(C));
    const unsigned blocks = std::min(blocks_for(a.tokens, kTogether), 2048u);
    const bool chunks =
        !p_.interleaved && half % kChunk == 0 && has_packed_rows(x, x.dtype()) && has_packed_rows(y, x.dtype());
    if constexpr (sizeof(C) == 4) {
      if (chunks && size_of(x.dtype()) == 2)
        rotary<C, 2><<<blocks, kThreads, shared, stream_of(call)>>>(a);
      else if (chunks)
        rotary<C, 4><<<blocks, kThreads, shared, stream_of(call)>>>(a);
    }
    if (sizeof(C) == 8 || !chunks) rotary<C, 0><<<blocks, kThreads, shared, stream_of(call)>>>(a);
    check_launch(op);
  }

  RotaryPlan p_;
  void (Rotary::*run_)(Call) const;
};
GESTALT_KERNEL(Rotary);

}  // namespace
}  // namespace gestalt::kernels_cuda
