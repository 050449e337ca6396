#include "plugins/kernels_cuda/norm_fast.cuh"

// rms_norm: rstd = 1 / sqrt(mean(x^2) + eps), y = x rstd (w + offset). layer_norm: rstd = 1 / sqrt(variance + eps),
// y = (x - mean) rstd w + b. Here the form for any types and strides, with a block a row that reads the row again for
// each pass; norm_fast.cuh has the one for the rest.
namespace gestalt::kernels_cuda {
namespace {

struct Vector {
  Side side;
  int64_t step;
};
Vector vector_of(View v) { return v ? Vector{side_of(v), v.stride(0)} : Vector{}; }
template <class C>
__device__ __forceinline__ C one_of(const Vector& v, int64_t i) {
  return load_one<C>(v.side, i * v.step);
}

struct NormArgs {
  Rows<4> rows;  // x, y, rstd, mean
  Vector w, b;
  double eps, offset;
  bool has_bias;
};

template <class C, int K>
__device__ __forceinline__ C element_of(const Rows<K>& rows, const int64_t (&at)[K], int k, int64_t i) {
  return load_one<C>(rows.sides.side[k], at[k] + i * rows.step[k]);
}

template <class C, bool kLayer>
__global__ void __launch_bounds__(kThreads) norm_forward(const __grid_constant__ NormArgs a) {
  const int64_t n = a.rows.n;
  int64_t at[4] = {};
  a.rows.loop.locate_row(blockIdx.x, a.rows.loop.ndim, at);
  C middle = C(0);
  if constexpr (kLayer) {
    for (int64_t i = threadIdx.x; i < n; i += kThreads) middle += element_of<C>(a.rows, at, 0, i);
    middle = group_sum<kThreads>(middle) / static_cast<C>(n);
  }
  C square = C(0);
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    const C off = element_of<C>(a.rows, at, 0, i) - middle;
    square += off * off;
  }
  square = group_sum<kThreads>(square);
  const C scale = C(1) / sqrt(square / static_cast<C>(n) + static_cast<C>(a.eps));
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    const C x = element_of<C>(a.rows, at, 0, i), w = one_of<C>(a.w, i);
    C y;
    if constexpr (kLayer)
      y = (x - middle) * scale * w + (a.has_bias ? one_of<C>(a.b, i) : C(0));
    else
      y = x * scale * (w + static_cast<C>(a.offset));
    store_one<C>(a.rows.sides.side[1], at[1] + i * a.rows.step[1], y);
  }
  if (threadIdx.x != 0) return;
  store_one<C>(a.rows.sides.side[2], at[2], scale);
  if (kLayer) store_one<C>(a.rows.sides.side[3], at[3], middle);
}

struct NormBwdArgs {
  Rows<5> rows;  // x, dy, dx, rstd, mean
  Vector w;
  double offset;
};

// partial: of each block a row of dw, then (layer) one of db, which this block alone adds to.
template <class C, bool kLayer>
__global__ void __launch_bounds__(kThreads) norm_backward(const __grid_constant__ NormBwdArgs a, C* partial) {
  const int64_t n = a.rows.n;
  C* dw = partial + static_cast<int64_t>(blockIdx.x) * (kLayer ? 2 : 1) * n;
  C* db = dw + n;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    dw[i] = C(0);
    if (kLayer) db[i] = C(0);
  }
  for (int64_t row = blockIdx.x; row < a.rows.count; row += gridDim.x) {
    int64_t at[5] = {};
    a.rows.loop.locate_row(row, a.rows.loop.ndim, at);
    const C scale = element_of<C>(a.rows, at, 3, 0), middle = kLayer ? element_of<C>(a.rows, at, 4, 0) : C(0);
    // (x - mean) rstd, or x itself without layer; and dy times the weight.
    const auto normal = [&](int64_t i) {
      const C x = element_of<C>(a.rows, at, 0, i);
      return kLayer ? (x - middle) * scale : x;
    };
    const auto along = [&](int64_t i) {
      return element_of<C>(a.rows, at, 1, i) * (one_of<C>(a.w, i) + static_cast<C>(a.offset));
    };
    C plain = C(0), turned = C(0);
    for (int64_t i = threadIdx.x; i < n; i += kThreads) {
      plain += along(i);
      turned += along(i) * normal(i);
    }
    const C level = kLayer ? group_sum<kThreads>(plain) / static_cast<C>(n) : C(0);
    turned = group_sum<kThreads>(turned);
    const C pull = kLayer ? turned / static_cast<C>(n) : turned * scale * scale / static_cast<C>(n);
    for (int64_t i = threadIdx.x; i < n; i += kThreads) {
      const C x = normal(i), dy = element_of<C>(a.rows, at, 1, i);
      store_one<C>(a.rows.sides.side[2], at[2] + i * a.rows.step[2], (along(i) - level - x * pull) * scale);
      dw[i] += kLayer ? dy * x : dy * x * scale;
      if (kLayer) db[i] += dy;
    }
  }
}

// Adds the parts of all blocks. blockIdx.y: 0 dw, 1 db.
constexpr int kAdders = 32;  // rows of threads: parts are many
template <class C>
__global__ void __launch_bounds__(kAdders * 32)
    add_parts(const C* partial, int64_t parts, int64_t n, const Vector dw, const Vector db, bool add_w, bool add_b) {
  __shared__ double sums[kAdders][33];
  const int lane = static_cast<int>(threadIdx.x) % 32, adder = static_cast<int>(threadIdx.x) / 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + lane;
  const int64_t pitch = gridDim.y * n;
  double sum = 0;
  if (column < n) {
#pragma unroll 4
    for (int64_t i = adder; i < parts; i += kAdders)
      sum += static_cast<double>(partial[i * pitch + blockIdx.y * n + column]);
  }
  sums[adder][lane] = sum;
  __syncthreads();
  if (adder != 0 || column >= n) return;
  sum = 0;
#pragma unroll
  for (int i = 0; i < kAdders; ++i) sum += sums[i][lane];
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

// What the fast form takes: the loop over rows is one run in every tensor, and so is every row.
template <int K>
bool is_packed(const Rows<K>& rows, std::initializer_list<View> matrices, std::initializer_list<View> vectors) {
  if (rows.loop.ndim > 1 || rows.n == 0 || rows.n > 2 * kMostThreads * kChunk) return false;
  const DType dtype = (*matrices.begin()).dtype();
  for (View v : matrices)
    if (!has_packed_rows(v, dtype)) return false;
  for (View v : vectors)
    if (v && !has_packed_rows(v, dtype)) return false;
  for (int k = 0; k < K; ++k)
    if (rows.step[k] == 0 && rows.sides.side[k].dtype != GESTALT_F32) return false;
  return true;
}

constexpr int64_t kProcessors = 132;  // of a large GPU; the same everywhere, so that the bits are too

// Blocks of a kernel that fit on such a GPU at once: more would run after the others, alone.
template <class K>
int64_t resident_blocks(K* kernel, int threads) {
  int blocks = 1;
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0), "norm");
  return kProcessors * std::max(blocks, 1);
}

template <int kBytes, bool kLayer>
void launch_packed(const PackedNorm& a, cudaStream_t stream) {
  const auto launch = [&](auto* kernel, int threads, int64_t rows_per_block) {
    const int64_t blocks = std::min((a.rows + rows_per_block - 1) / rows_per_block, resident_blocks(kernel, threads));
    kernel<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(a);
  };
  if (a.n <= 1024)
    launch(&packed_norm<kBytes, kLayer, true, 4>, 128, 4);
  else if (a.n <= kMostThreads * kChunk)
    launch(&packed_norm<kBytes, kLayer, false, 1>, threads_for(a.n), 1);
  else
    launch(&packed_norm<kBytes, kLayer, false, 2>, threads_for(a.n), 1);
}

template <class C, bool kLayer>
void forward(const Call& call, std::string_view op, const NormArgs& a, View b) {
  if (a.rows.count == 0) return;
  const View x = call.in(0), y = call.out(0), w = call.in(1);
  if (sizeof(C) == 4 && is_packed<4>(a.rows, {x, y}, {w, b})) {
    const int64_t size = size_of(x.dtype());
    const PackedNorm p{.x = x.data<char>(),
                       .dy = nullptr,
                       .w = w.data<char>(),
                       .b = b ? b.data<char>() : nullptr,
                       .y = y.data<char>(),
                       .rstd = reinterpret_cast<float*>(a.rows.sides.side[2].data),
                       .mean = reinterpret_cast<float*>(a.rows.sides.side[3].data),
                       .x_row = a.rows.loop.stride[0][0] * size,
                       .dy_row = 0,
                       .y_row = a.rows.loop.stride[0][1] * size,
                       .rstd_step = a.rows.loop.stride[0][2],
                       .mean_step = a.rows.loop.stride[0][3],
                       .rows = a.rows.count,
                       .n = a.rows.n,
                       .eps = static_cast<float>(a.eps),
                       .offset = static_cast<float>(a.offset),
                       .half = x.is(kF16),
                       .has_bias = a.has_bias};
    if (size == 2)
      launch_packed<2, kLayer>(p, stream_of(call));
    else
      launch_packed<4, kLayer>(p, stream_of(call));
  } else {
    norm_forward<C, kLayer><<<static_cast<unsigned>(a.rows.count), kThreads, 0, stream_of(call)>>>(a);
  }
  check_launch(op);
}

// Elements of one kind of parts that the workspace holds, and the blocks of the backward that they allow.
int64_t part_elements(int64_t rows, int64_t n) {
  return std::min(rows * n, 8 * kProcessors * 1024 + 2 * kProcessors * n);
}
int64_t backward_blocks(int64_t rows, int64_t n, int64_t resident) {
  return std::min({rows, resident, part_elements(rows, n) / n});
}
uint64_t backward_bytes(View x, int64_t parts) {
  int64_t rows = 1;
  for (int d = 0; d + 1 < x.ndim(); ++d) rows *= x.dim(d);
  return static_cast<uint64_t>(part_elements(rows, x.dim(-1)) * parts * (x.is(kF64) ? 8 : 4));
}

// Returns the number of parts.
template <int kBytes, bool kLayer>
int64_t launch_packed_bwd(const PackedNorm& a, float* partial, cudaStream_t stream) {
  const auto launch = [&](auto* kernel) {
    const int threads = threads_for(a.n);
    const int64_t blocks = backward_blocks(a.rows, a.n, resident_blocks(kernel, threads));
    kernel<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(a, partial);
    return blocks;
  };
  if (a.n <= kMostThreads * kChunk) return launch(&packed_norm_bwd<kBytes, kLayer, 1>);
  return launch(&packed_norm_bwd<kBytes, kLayer, 2>);
}

template <class C, bool kLayer>
void backward(const Call& call, std::string_view op, const NormBwdArgs& a, View dy, View dw, View db) {
  cudaStream_t stream = stream_of(call);
  C* partial = static_cast<C*>(call.workspace());
  const int64_t n = a.rows.n;
  if (n == 0) return;
  int64_t blocks = backward_blocks(a.rows.count, n, 2 * kProcessors);
  const View x = call.in(0), w = call.in(1), dx = call.out(0);
  if (blocks > 0 && sizeof(C) == 4 && is_packed<5>(a.rows, {x, dy, dx}, {w})) {
    const int64_t size = size_of(x.dtype());
    const PackedNorm p{.x = x.data<char>(),
                       .dy = dy.data<char>(),
                       .w = w.data<char>(),
                       .b = nullptr,
                       .y = dx.data<char>(),
                       .rstd = reinterpret_cast<float*>(a.rows.sides.side[3].data),
                       .mean = reinterpret_cast<float*>(a.rows.sides.side[4].data),
                       .x_row = a.rows.loop.stride[0][0] * size,
                       .dy_row = a.rows.loop.stride[0][1] * size,
                       .y_row = a.rows.loop.stride[0][2] * size,
                       .rstd_step = a.rows.loop.stride[0][3],
                       .mean_step = a.rows.loop.stride[0][4],
                       .rows = a.rows.count,
                       .n = n,
                       .eps = 0,
                       .offset = static_cast<float>(a.offset),
                       .half = x.is(kF16),
                       .has_bias = false};
    float* parts = static_cast<float*>(call.workspace());
    blocks =
        size == 2 ? launch_packed_bwd<2, kLayer>(p, parts, stream) : launch_packed_bwd<4, kLayer>(p, parts, stream);
  } else if (blocks > 0) {
    norm_backward<C, kLayer><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(a, partial);
  }
  add_parts<C><<<dim3(blocks_for(n, 32), kLayer ? 2 : 1), kAdders * 32, 0, stream>>>(
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
                       .has_bias = false},
                      View());
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
        call, op, {.rows = make_rows<5>(x, {x, dy, dx, rstd, rstd}), .w = vector_of(call.in(1)), .offset = offset_}, dy,
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
                      .has_bias = has_bias_},
                     has_bias_ ? call.in(2) : View());
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
                      {.rows = make_rows<5>(x, {x, dy, dx, rstd, mean}), .w = vector_of(call.in(1)), .offset = 0}, dy,
                      call.out(1), call.out(2));
  }

  void (LayerNormBwd::*run_)(Call) const;
};
GESTALT_KERNEL(LayerNormBwd);

}  // namespace
}  // namespace gestalt::kernels_cuda
