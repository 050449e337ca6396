#include "plugins/kernels_cuda/element_kernel.h"
#include "plugins/kernels_cuda/loop.cuh"

// Turns pair i of the first `dims` elements of each head by positions[t] theta^(-2i / dims) radians, or by row t of the
// table: dims/2 cosines, then dims/2 sines. A pair is (i, i + dims/2), or (2i, 2i + 1) where interleaved. inverse turns
// back: the gradient. The rest of a head is copied. A block takes tokens in turn; the cosines and sines of a token are
// computed once, for all heads.
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

template <class C>
__global__ void __launch_bounds__(kThreads) rotary(const __grid_constant__ RotaryArgs a) {
  extern __shared__ double shared[];
  double* turns = shared;  // per position, of each pair
  C* cosine = reinterpret_cast<C*>(turns + (a.by_table ? 0 : a.half));
  C* sine = cosine + a.half;
  if (!a.by_table)
    for (int64_t i = threadIdx.x; i < a.half; i += kThreads)
      turns[i] = pow(a.theta, -static_cast<double>(i) / static_cast<double>(a.half)) / 6.283185307179586477;
  const int64_t pair_chunks = (a.half + kChunk - 1) / kChunk;
  const int64_t rest = a.size - 2 * a.half, rest_chunks = (rest + kChunk - 1) / kChunk;
  const int64_t head_chunks = pair_chunks + rest_chunks;
  const int64_t step = a.interleaved ? 2 : 1, other = a.interleaved ? 1 : a.half;
  for (int64_t t = blockIdx.x; t < a.tokens; t += gridDim.x) {
    __syncthreads();
    for (int64_t i = threadIdx.x; i < a.half; i += kThreads) {
      if (a.by_table) {
        cosine[i] = load_one<C>(a.by, t * a.by_row + i * a.by_column);
        sine[i] = load_one<C>(a.by, t * a.by_row + (a.half + i) * a.by_column);
      } else {
        turn_of(load_one<double>(a.by, t * a.by_row) * turns[i], cosine + i, sine + i);
      }
      sine[i] *= static_cast<C>(a.sense);
    }
    __syncthreads();
    for (int64_t item = threadIdx.x; item < a.heads * head_chunks; item += kThreads) {
      const int64_t head = Loop<1>::divide(item, head_chunks), chunk = item - head * head_chunks;
      const int64_t from = t * a.x_token + head * a.x_head, to = t * a.y_token + head * a.y_head;
      if (chunk >= pair_chunks) {
        const int64_t i = (chunk - pair_chunks) * kChunk, at = 2 * a.half + i;
        const int n = rest - i < kChunk ? static_cast<int>(rest - i) : kChunk;
        C x[kChunk];
        load_chunk(a.x, from + at * a.x_step, a.x_step, n, x);
        store_chunk(a.y, to + at * a.y_step, a.y_step, n, x);
        continue;
      }
      const int64_t i = chunk * kChunk;
      const int n = a.half - i < kChunk ? static_cast<int>(a.half - i) : kChunk;
      const int64_t x_step = step * a.x_step, y_step = step * a.y_step;
      const int64_t u_at = from + i * x_step, v_at = u_at + other * a.x_step;
      Held<C> u_held, v_held;
      C u[kChunk], v[kChunk];
      fetch(a.x, u_at, x_step, n, u_held);
      fetch(a.x, v_at, x_step, n, v_held);
      unpack(a.x, u_at, x_step, n, u_held, u);
      unpack(a.x, v_at, x_step, n, v_held, v);
#pragma unroll
      for (int j = 0; j < kChunk; ++j) {
        if (j >= n) continue;
        const C c = cosine[i + j], s = sine[i + j], p = u[j], q = v[j];
        u[j] = p * c - q * s;
        v[j] = p * s + q * c;
      }
      const int64_t to_u = to + i * y_step;
      store_chunk(a.y, to_u, y_step, n, u);
      store_chunk(a.y, to_u + other * a.y_step, y_step, n, v);
    }
  }
}

class Rotary : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.rotary";

  explicit Rotary(Plan plan) : interleaved_(plan.attrs().boolean("interleaved", false)), by_table_(plan.has_in(2)) {
    const View x = plan.in(0);
    need_float(plan, x, "x");
    need_ndim(plan, x, "x", 3);
    if (plan.has_in(1) == plan.has_in(2))
      throw InvalidArgument(place(plan) + "got " +
                            (plan.has_in(1) ? "positions and a table" : "no positions, no table") +
                            ", expected either");
    int64_t dims = plan.attrs().i64("dims", 0);
    if (plan.has_in(2)) {
      need_dtype(plan, plan.in(2), "table", {x.is(kF64) ? kF64 : kF32});
      need_ndim(plan, plan.in(2), "table", 2);
      need_dim(plan, plan.in(2), "table", 0, x.dim(0));
      dims = plan.in(2).dim(1);
    } else {
      need_index(plan, plan.in(1), "positions");
      need_ndim(plan, plan.in(1), "positions", 1);
      need_dim(plan, plan.in(1), "positions", 0, x.dim(0));
      if (dims == 0) dims = x.dim(2);
    }
    if (dims < 0 || dims % 2 != 0 || dims > x.dim(2))
      throw InvalidArgument(place(plan) + "dims: cannot be rotated in pairs, got " + std::to_string(dims) +
                            ", expected an even number up to " + std::to_string(x.dim(2)));
    if (dims > kMostDims)
      throw Unsupported(place(plan) + "dims: got " + std::to_string(dims) + ", expected at most " +
                        std::to_string(kMostDims));
    half_ = dims / 2;
    theta_ = plan.attrs().f64("theta", 1e4);
    if (!(theta_ > 0))
      throw InvalidArgument(place(plan) + "theta: got " + std::to_string(theta_) + ", expected above 0");
    sense_ = plan.attrs().boolean("inverse", false) ? -1 : 1;
    run_ = for_compute_type(x.dtype(), &Rotary::run_as<float>, &Rotary::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), y = call.out(0), by = call.in(by_table_ ? 2 : 1);
    if (x.numel() == 0) return;
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
                       .by_column = by_table_ ? by.stride(1) : 0,
                       .tokens = x.dim(0),
                       .heads = x.dim(1),
                       .size = x.dim(2),
                       .half = half_,
                       .theta = theta_,
                       .sense = sense_,
                       .interleaved = interleaved_,
                       .by_table = by_table_};
    const size_t shared = static_cast<size_t>(half_) * ((by_table_ ? 0 : sizeof(double)) + 2 * sizeof(C));
    const auto blocks = static_cast<unsigned>(std::min<int64_t>(a.tokens, 2048));
    rotary<C><<<blocks, kThreads, shared, stream_of(call)>>>(a);
    check_launch(op);
  }

  bool interleaved_, by_table_;
  int64_t half_;
  double theta_, sense_;
  void (Rotary::*run_)(Call) const;
};
GESTALT_KERNEL(Rotary);

}  // namespace
}  // namespace gestalt::kernels_cuda
