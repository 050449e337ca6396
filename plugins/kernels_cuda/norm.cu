#include "plugins/kernels_cuda/rows.cuh"

// rms_norm: rstd = 1 / sqrt(mean(x^2) + eps), y = x rstd (w + offset). layer_norm: rstd = 1 / sqrt(variance + eps),
// y = (x - mean) rstd w + b. A row lives in the registers of a warp (up to 1024 elements) or of a block (up to 16384);
// longer rows are read again. Backward: each block walks over rows and keeps its part of the weights' gradients; the
// parts are added in order.
namespace gestalt::kernels_cuda {
namespace {

constexpr int kMostThreads = 512;

struct Vector {
  Side side;
  int64_t step;
};
Vector vector_of(View v) { return v ? Vector{side_of(v), v.stride(0)} : Vector{}; }

template <class C>
__device__ __forceinline__ void load_vector(const Vector& v, int64_t i, int64_t n, C (&x)[kChunk]) {
  load_chunk(v.side, i * v.step, v.step, n - i < kChunk ? static_cast<int>(n - i) : kChunk, x);
}

// Chunks of a row that one thread has: kHold in registers, or all that it reads again where kHold is 0.
template <class C, int kHold>
struct HeldRow {
  C x[kHold > 0 ? kHold : 1][kChunk];

  template <class L>
  __device__ __forceinline__ void load(int64_t n, int lane, int threads, L fill) {
#pragma unroll
    for (int h = 0; h < kHold; ++h) {
      const int64_t i = static_cast<int64_t>(h * threads + lane) * kChunk;
      if (i < n) fill(i, x[h]);
    }
  }
  template <class L, class F>
  __device__ __forceinline__ void each(int64_t n, int lane, int threads, L fill, F f) {
    if constexpr (kHold > 0) {
#pragma unroll
      for (int h = 0; h < kHold; ++h) {
        const int64_t i = static_cast<int64_t>(h * threads + lane) * kChunk;
        if (i < n) f(i, x[h]);
      }
    } else {
      for (int64_t i = lane * kChunk; i < n; i += threads * kChunk) {
        fill(i, x[0]);
        f(i, x[0]);
      }
    }
  }
};

struct NormArgs {
  Rows<4> rows;  // x, y, rstd, mean
  Vector w, b;
  double eps, offset;
  bool has_bias;
};

// kGroup 32: a warp a row; else the block.
template <class C, bool kLayer, int kGroup, int kHold>
__global__ void __launch_bounds__(kMostThreads) norm_forward(const __grid_constant__ NormArgs a) {
  constexpr bool kWarp = kGroup == 32;
  const int threads = kWarp ? 32 : static_cast<int>(blockDim.x);
  const int lane = kWarp ? static_cast<int>(threadIdx.x) % 32 : static_cast<int>(threadIdx.x);
  const int64_t index = kWarp ? static_cast<int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32 : blockIdx.x;
  if (index >= a.rows.count) return;
  const Row<C, 4, kGroup> row(a.rows, index, lane);
  const int64_t n = a.rows.n;
  const auto fill = [&](int64_t i, C(&x)[kChunk]) { row.load(0, i, x); };
  HeldRow<C, kHold> held;
  held.load(n, lane, threads, fill);
  C middle = C(0);
  if constexpr (kLayer) {
    held.each(n, lane, threads, fill, [&](int64_t, C(&x)[kChunk]) {
#pragma unroll
      for (int j = 0; j < kChunk; ++j) middle += x[j];
    });
    middle = group_sum<kGroup>(middle) / static_cast<C>(n);
  }
  C square = C(0);
  held.each(n, lane, threads, fill, [&](int64_t i, C(&x)[kChunk]) {
    const int count = row.count(i);
#pragma unroll
    for (int j = 0; j < kChunk; ++j) {
      const C off = x[j] - middle;
      square += j < count ? off * off : C(0);
    }
  });
  square = group_sum<kGroup>(square);
  const C scale = C(1) / sqrt(square / static_cast<C>(n) + static_cast<C>(a.eps));
  held.each(n, lane, threads, fill, [&](int64_t i, C(&x)[kChunk]) {
    C w[kChunk], b[kChunk] = {};
    load_vector(a.w, i, n, w);
    if (kLayer && a.has_bias) load_vector(a.b, i, n, b);
#pragma unroll
    for (int j = 0; j < kChunk; ++j) {
      if constexpr (kLayer)
        x[j] = (x[j] - middle) * scale * w[j] + b[j];
      else
        x[j] = x[j] * scale * (w[j] + static_cast<C>(a.offset));
    }
    row.store(1, i, x);
  });
  row.put(2, scale);
  if (kLayer) row.put(3, middle);
}

template <class C>
struct Two {
  C a, b;
  __device__ __forceinline__ Two exchanged(int offset) const {
    return {__shfl_xor_sync(0xffffffffu, a, offset), __shfl_xor_sync(0xffffffffu, b, offset)};
  }
};
struct PlusBoth {
  template <class C>
  __device__ Two<C> operator()(Two<C> x, Two<C> y) const {
    return {x.a + y.a, x.b + y.b};
  }
};

struct NormBwdArgs {
  Rows<5> rows;  // x, dy, dx, rstd, mean
  Vector w;
  double offset;
};

// partial: of each block a row of dw, then (layer) one of db.
template <class C, bool kLayer, int kHold>
__global__ void __launch_bounds__(kMostThreads) norm_backward(const __grid_constant__ NormBwdArgs a, C* partial) {
  const int threads = static_cast<int>(blockDim.x), lane = static_cast<int>(threadIdx.x);
  const int64_t n = a.rows.n;
  constexpr int kParts = kLayer ? 2 : 1;
  constexpr int kSums = kHold > 0 ? kHold : 1;
  C* own = partial + static_cast<int64_t>(blockIdx.x) * kParts * n;
  C dw[kSums][kChunk] = {}, db[kSums][kChunk] = {};
  if (kHold == 0)
    for (int64_t i = lane * kChunk; i < n; i += threads * kChunk)
      for (int64_t j = i; j < n && j < i + kChunk; ++j)
        for (int p = 0; p < kParts; ++p) own[p * n + j] = C(0);

  for (int64_t index = blockIdx.x; index < a.rows.count; index += gridDim.x) {
    const Row<C, 5, kThreads> row(a.rows, index, lane);
    const C scale = row.one(3), middle = kLayer ? row.one(4) : C(0);
    // x becomes (x - mean) rstd; x itself without layer.
    const auto fill = [&](int64_t i, C(&x)[kChunk], C(&dy)[kChunk]) {
      const int count = row.count(i);
      const int64_t x_at = row.at[0] + i * a.rows.step[0], dy_at = row.at[1] + i * a.rows.step[1];
      Held<C> x_held, dy_held;
      fetch(a.rows.sides.side[0], x_at, a.rows.step[0], count, x_held);
      fetch(a.rows.sides.side[1], dy_at, a.rows.step[1], count, dy_held);
      unpack(a.rows.sides.side[0], x_at, a.rows.step[0], count, x_held, x);
      unpack(a.rows.sides.side[1], dy_at, a.rows.step[1], count, dy_held, dy);
      if constexpr (kLayer) {
#pragma unroll
        for (int j = 0; j < kChunk; ++j) x[j] = (x[j] - middle) * scale;
      }
    };
    C x[kSums][kChunk], dy[kSums][kChunk];
#pragma unroll
    for (int h = 0; h < kHold; ++h) {
      const int64_t i = static_cast<int64_t>(h * threads + lane) * kChunk;
      if (i < n) fill(i, x[h], dy[h]);
    }
    const auto each = [&](auto f) {
      if constexpr (kHold > 0) {
#pragma unroll
        for (int h = 0; h < kHold; ++h) {
          const int64_t i = static_cast<int64_t>(h * threads + lane) * kChunk;
          if (i < n) f(i, x[h], dy[h], dw[h], db[h]);
        }
      } else {
        for (int64_t i = lane * kChunk; i < n; i += threads * kChunk) {
          fill(i, x[0], dy[0]);
          f(i, x[0], dy[0], dw[0], db[0]);
        }
      }
    };
    Two<C> sum{C(0), C(0)};  // of dy w, of dy w x
    each([&](int64_t i, C(&v)[kChunk], C(&d)[kChunk], C(&)[kChunk], C(&)[kChunk]) {
      C w[kChunk];
      load_vector(a.w, i, n, w);
      const int count = row.count(i);
#pragma unroll
      for (int j = 0; j < kChunk; ++j) {
        const C along = j < count ? d[j] * (w[j] + static_cast<C>(a.offset)) : C(0);
        sum.a += along;
        sum.b += along * v[j];
      }
    });
    sum = group_reduce<kThreads>(sum, PlusBoth());
    const C level = sum.a / static_cast<C>(n);
    const C pull = kLayer ? sum.b / static_cast<C>(n) : sum.b * scale * scale / static_cast<C>(n);
    each([&](int64_t i, C(&v)[kChunk], C(&d)[kChunk], C(&to_w)[kChunk], C(&to_b)[kChunk]) {
      C w[kChunk], dx[kChunk];
      load_vector(a.w, i, n, w);
#pragma unroll
      for (int j = 0; j < kChunk; ++j) {
        const C along = d[j] * (w[j] + static_cast<C>(a.offset));
        dx[j] = kLayer ? (along - level - v[j] * pull) * scale : (along - v[j] * pull) * scale;
      }
      row.store(2, i, dx);
      const int count = row.count(i);
#pragma unroll
      for (int j = 0; j < kChunk; ++j) {
        const C to = kLayer ? d[j] * v[j] : d[j] * v[j] * scale;
        if constexpr (kHold > 0) {
          to_w[j] += to;
          if (kLayer) to_b[j] += d[j];
        } else if (j < count) {
          own[i + j] += to;
          if (kLayer) own[n + i + j] += d[j];
        }
      }
    });
  }
#pragma unroll
  for (int h = 0; h < kHold; ++h) {
    const int64_t i = static_cast<int64_t>(h * threads + lane) * kChunk;
#pragma unroll
    for (int j = 0; j < kChunk; ++j) {
      if (i + j >= n) continue;
      own[i + j] = dw[h][j];
      if (kLayer) own[n + i + j] = db[h][j];
    }
  }
}

// Adds the parts of all blocks. blockIdx.y: 0 dw, 1 db.
template <class C>
__global__ void __launch_bounds__(kThreads)
    add_parts(const C* partial, int64_t parts, int64_t n, const Vector dw, const Vector db, bool add_w, bool add_b) {
  __shared__ double sums[8][33];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x % 32;
  const int64_t pitch = gridDim.y * n;
  double sum = 0;
  if (column < n)
    for (int64_t i = threadIdx.x / 32; i < parts; i += 8)
      sum += static_cast<double>(partial[i * pitch + blockIdx.y * n + column]);
  sums[threadIdx.x / 32][threadIdx.x % 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32 || column >= n) return;
  sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += sums[i][threadIdx.x];
  const Vector& to = blockIdx.y == 0 ? dw : db;
  store_one<C>(to.side, column * to.step, static_cast<C>(sum), blockIdx.y == 0 ? add_w : add_b);
}

void need_norm(const Plan& plan, View x, View w, std::string_view name) {
  need_float(plan, x, "x");
  if (x.ndim() < 1) throw InvalidArgument(place(plan) + "x: no dimension to normalise, got " + describe(x));
  need_like(plan, w, name, x);
  need_ndim(plan, w, name, 1);
  need_dim(plan, w, name, 0, x.dim(-1));
}

// Threads for a row of n elements in chunks: as many as chunks, in whole warps.
int threads_for(int64_t n) {
  const int64_t chunks = (n + kChunk - 1) / kChunk;
  return static_cast<int>(std::clamp<int64_t>((chunks + 31) / 32 * 32, 32, kMostThreads));
}
int hold_for(int64_t n) { return n <= 4096 ? 1 : n <= 8192 ? 2 : n <= 16384 ? 4 : 0; }

template <class C, bool kLayer>
void forward(const Call& call, std::string_view op, const NormArgs& a) {
  if (a.rows.count == 0) return;
  cudaStream_t stream = stream_of(call);
  const auto rows = static_cast<unsigned>(a.rows.count);
  const int threads = threads_for(a.rows.n);
  if constexpr (sizeof(C) == 8) {  // f64 is for checks: one form is enough
    norm_forward<C, kLayer, kThreads, 0><<<rows, threads, 0, stream>>>(a);
  } else if (a.rows.n <= 1024) {
    norm_forward<C, kLayer, 32, 4><<<blocks_for(a.rows.count, 4), 128, 0, stream>>>(a);
  } else {
    switch (hold_for(a.rows.n)) {
      case 1:
        norm_forward<C, kLayer, kThreads, 1><<<rows, threads, 0, stream>>>(a);
        break;
      case 2:
        norm_forward<C, kLayer, kThreads, 2><<<rows, threads, 0, stream>>>(a);
        break;
      case 4:
        norm_forward<C, kLayer, kThreads, 4><<<rows, threads, 0, stream>>>(a);
        break;
      default:
        norm_forward<C, kLayer, kThreads, 0><<<rows, threads, 0, stream>>>(a);
    }
  }
  check_launch(op);
}

// Blocks of the backward: what fills a large GPU, and the same number on every GPU so that the bits are too.
constexpr int64_t kProcessors = 132;
int64_t backward_blocks(int64_t rows, int64_t n) {
  return std::min(rows, kProcessors * std::clamp<int64_t>(1024 / threads_for(n), 2, 8));
}
uint64_t backward_bytes(View x, int64_t parts) {
  int64_t rows = 1;
  for (int d = 0; d + 1 < x.ndim(); ++d) rows *= x.dim(d);
  const int64_t n = x.dim(-1);
  const int64_t most = std::min(rows * n, 8 * kProcessors * 1024 + 2 * kProcessors * n);
  return static_cast<uint64_t>(most * parts * (x.is(kF64) ? 8 : 4));
}

template <class C, bool kLayer>
void backward(const Call& call, std::string_view op, const NormBwdArgs& a, View dw, View db) {
  cudaStream_t stream = stream_of(call);
  C* partial = static_cast<C*>(call.workspace());
  const int64_t n = a.rows.n, blocks = backward_blocks(a.rows.count, n);
  if (n == 0) return;
  const auto grid = static_cast<unsigned>(blocks);
  const int threads = threads_for(n);
  if constexpr (sizeof(C) == 8) {
    if (blocks > 0) norm_backward<C, kLayer, 0><<<grid, threads, 0, stream>>>(a, partial);
  } else if (blocks > 0) {
    switch (hold_for(n)) {
      case 1:
        norm_backward<C, kLayer, 1><<<grid, threads, 0, stream>>>(a, partial);
        break;
      case 2:
        norm_backward<C, kLayer, 2><<<grid, threads, 0, stream>>>(a, partial);
        break;
      case 4:
        norm_backward<C, kLayer, 4><<<grid, threads, 0, stream>>>(a, partial);
        break;
      default:
        norm_backward<C, kLayer, 0><<<grid, threads, 0, stream>>>(a, partial);
    }
  }
  add_parts<C><<<dim3(blocks_for(n, 32), kLayer ? 2 : 1), kThreads, 0, stream>>>(
      partial, blocks, n, vector_of(dw), vector_of(db), call.accumulate(1), kLayer && call.accumulate(2));
  check_launch(op);
}

class RmsNorm : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.rms_norm";

  explicit RmsNorm(Plan plan) : eps_(plan.attrs().f64("eps", 1e-5)), offset_(plan.attrs().f64("offset", 0)) {
    need_norm(plan, plan.in(0), plan.in(1), "w");
    run_ = for_compute_type(plan.in(0).dtype(), &RmsNorm::run_as<float>, &RmsNorm::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), rstd = call.out(1);
    forward<C, false>(call, op,
                      {.rows = make_rows<4>(x, {x, call.out(0), rstd, rstd}),
                       .w = vector_of(call.in(1)),
                       .b = {},
                       .eps = eps_,
                       .offset = offset_,
                       .has_bias = false});
  }

  double eps_, offset_;
  void (RmsNorm::*run_)(Call) const;
};
GESTALT_KERNEL(RmsNorm);

class RmsNormBwd : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.rms_norm_bwd";
  static constexpr uint64_t flags = ElementKernel::accumulating;

  explicit RmsNormBwd(Plan plan) : offset_(plan.attrs().f64("offset", 0)) {
    need_norm(plan, plan.in(0), plan.in(1), "w");
    need_statistics(plan, plan.in(0), plan.in(2), "rstd");
    need_like(plan, plan.in(3), "dy", plan.in(0));
    need_same_shape(plan, plan.in(3), "dy", plan.in(0));
    run_ = for_compute_type(plan.in(0).dtype(), &RmsNormBwd::run_as<float>, &RmsNormBwd::run_as<double>);
    plan.workspace(backward_bytes(plan.in(0), 1));
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), rstd = call.in(2), dy = call.in(3), dx = call.out(0);
    backward<C, false>(
        call, op, {.rows = make_rows<5>(x, {x, dy, dx, rstd, rstd}), .w = vector_of(call.in(1)), .offset = offset_},
        call.out(1), View());
  }

  double offset_;
  void (RmsNormBwd::*run_)(Call) const;
};
GESTALT_KERNEL(RmsNormBwd);

class LayerNorm : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.layer_norm";

  explicit LayerNorm(Plan plan) : eps_(plan.attrs().f64("eps", 1e-5)), has_bias_(plan.has_in(2)) {
    need_norm(plan, plan.in(0), plan.in(1), "w");
    if (has_bias_) need_norm(plan, plan.in(0), plan.in(2), "b");
    run_ = for_compute_type(plan.in(0).dtype(), &LayerNorm::run_as<float>, &LayerNorm::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), mean = call.out(1), rstd = call.out(2);
    forward<C, true>(call, op,
                     {.rows = make_rows<4>(x, {x, call.out(0), rstd, mean}),
                      .w = vector_of(call.in(1)),
                      .b = has_bias_ ? vector_of(call.in(2)) : Vector{},
                      .eps = eps_,
                      .offset = 0,
                      .has_bias = has_bias_});
  }

  double eps_;
  bool has_bias_;
  void (LayerNorm::*run_)(Call) const;
};
GESTALT_KERNEL(LayerNorm);

class LayerNormBwd : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.layer_norm_bwd";
  static constexpr uint64_t flags = ElementKernel::accumulating;

  explicit LayerNormBwd(Plan plan) {
    need_norm(plan, plan.in(0), plan.in(1), "w");
    need_statistics(plan, plan.in(0), plan.in(2), "mean");
    need_statistics(plan, plan.in(0), plan.in(3), "rstd");
    need_like(plan, plan.in(4), "dy", plan.in(0));
    need_same_shape(plan, plan.in(4), "dy", plan.in(0));
    run_ = for_compute_type(plan.in(0).dtype(), &LayerNormBwd::run_as<float>, &LayerNormBwd::run_as<double>);
    plan.workspace(backward_bytes(plan.in(0), 2));
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), mean = call.in(2), rstd = call.in(3), dy = call.in(4), dx = call.out(0);
    backward<C, true>(call, op,
                      {.rows = make_rows<5>(x, {x, dy, dx, rstd, mean}), .w = vector_of(call.in(1)), .offset = 0},
                      call.out(1), call.out(2));
  }

  void (LayerNormBwd::*run_)(Call) const;
};
GESTALT_KERNEL(LayerNormBwd);

}  // namespace
}  // namespace gestalt::kernels_cuda
