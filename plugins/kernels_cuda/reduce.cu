#include "plugins/kernels_cuda/packed.cuh"
#include "plugins/kernels_cuda/rows.cuh"

// Sums over any dimensions, in double. Where the last dimension stays, threads stand side by side in it and walk down
// the rows; where it is reduced, groups of threads walk along it. Long sums are cut into slices whose totals lie in the
// workspace until a second kernel adds them in order.
namespace gestalt::kernels_cuda {
namespace {

constexpr int64_t kMostBlocks = 1024;   // beyond which nothing is cut
constexpr int64_t kSliceRows = 32;      // least rows of a slice
constexpr int64_t kSliceChunks = 1024;  // least chunks of a slice
constexpr int kColumns = 32 * kChunk;   // that a block of 8 lanes of rows does

struct SumOp {
  static constexpr std::string_view name = "core.sum";
  static constexpr bool mean = false;
};
struct MeanOp {
  static constexpr std::string_view name = "core.mean";
  static constexpr bool mean = true;
};

// One sum of all of `inner` for each index of `kept`, by groups of threads; slices > 1 only for whole blocks.
template <class C, int kGroup>
__global__ void __launch_bounds__(kThreads)
    sum_along(const __grid_constant__ Loop<2> kept, const __grid_constant__ Loop<1> inner, const Side x, const Side y,
              int64_t chunks, int64_t slices, double* partial, double divisor, bool accumulate) {
  const int64_t item = static_cast<int64_t>(blockIdx.x) * (kThreads / kGroup) + threadIdx.x / kGroup;
  if (item >= kept.numel * slices) return;
  const int64_t index = item / slices, slice = item % slices;
  const int lane = static_cast<int>(threadIdx.x) % kGroup;
  int64_t at[2] = {0, 0};
  kept.locate_row(index, kept.ndim, at);
  const int64_t step = inner.stride[inner.ndim - 1][0];
  const int64_t end = chunks * (slice + 1) / slices;
  double total = 0;
  for (int64_t chunk = chunks * slice / slices + lane; chunk < end; chunk += kGroup) {
    int64_t from[1];
    const int n = inner.locate(chunk, from);
    C value[kChunk];
    load_chunk(x, at[0] + from[0], step, n, value);
#pragma unroll
    for (int j = 0; j < kChunk; ++j) total += static_cast<double>(value[j]);
  }
  total = group_sum<kGroup>(total);
  if (lane != 0) return;
  if (slices > 1)
    partial[item] = total;
  else
    store_one<C>(y, at[1], static_cast<C>(total / divisor), accumulate);
}

template <class C>
__global__ void __launch_bounds__(kThreads)
    add_slices(const __grid_constant__ Loop<2> kept, const Side y, int64_t slices, const double* partial,
               double divisor, bool accumulate) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (index >= kept.numel) return;
  double total = 0;
  for (int64_t i = threadIdx.x % 32; i < slices; i += 32) total += partial[index * slices + i];
  total = group_sum<32>(total);
  if (threadIdx.x % 32 != 0) return;
  int64_t at[2] = {0, 0};
  kept.locate_row(index, kept.ndim, at);
  store_one<C>(y, at[1], static_cast<C>(total / divisor), accumulate);
}

struct Columns {
  int64_t width, step_x, step_y;
  int64_t blocks;  // of kColumns
  int64_t slices;
};

// Columns of `width` neighbours, summed over inner, for each index of kept. Partial sums: [kept, slice, width]. kBytes:
// of elements in whole aligned chunks, with inner one run of rows; 0: any other form.
template <class C, int kBytes>
__global__ void __launch_bounds__(kThreads)
    sum_down(const __grid_constant__ Loop<2> kept, const __grid_constant__ Loop<1> inner, const Side x, const Side y,
             const __grid_constant__ Columns c, double* partial, double divisor, bool accumulate) {
  __shared__ double sums[8][kColumns + 2];
  const int64_t block = blockIdx.x % c.blocks, rest = blockIdx.x / c.blocks;
  const int64_t slice = rest % c.slices, index = rest / c.slices;
  const int lane = static_cast<int>(threadIdx.x) / 32;
  const int64_t column = block * kColumns + threadIdx.x % 32 * kChunk;
  const int n = static_cast<int>(max(int64_t{0}, min(int64_t{kChunk}, c.width - column)));
  int64_t at[2] = {0, 0};
  kept.locate_row(index, kept.ndim, at);
  double total[kChunk] = {};
  const int64_t end = inner.numel * (slice + 1) / c.slices;
  int64_t row = inner.numel * slice / c.slices + lane;
  if constexpr (kBytes > 0) {
    if (n > 0) {
      const char* from = x.data + (at[0] + column) * kBytes;
      const int64_t pitch = inner.stride[0][0] * kBytes;
      constexpr int kFlight = 16 / kBytes;
      for (; row < end; row += 8 * kFlight) {
        Packed<kBytes> packed[kFlight];
#pragma unroll
        for (int u = 0; u < kFlight; ++u)
          if (row + 8 * u < end) packed[u].load(from + (row + 8 * u) * pitch);
#pragma unroll
        for (int u = 0; u < kFlight; ++u) {
          if (row + 8 * u >= end) continue;
          float value[kChunk];
          packed[u].unpack(x.dtype == GESTALT_F16, value);
#pragma unroll
          for (int j = 0; j < kChunk; ++j) total[j] += static_cast<double>(value[j]);
        }
      }
    }
  } else if (n > 0) {
    for (; row < end; row += 8) {
      int64_t from[1] = {at[0] + column * c.step_x};
      inner.locate_row(row, inner.ndim, from);
      C value[kChunk];
      load_chunk(x, from[0], c.step_x, n, value);
#pragma unroll
      for (int j = 0; j < kChunk; ++j) total[j] += static_cast<double>(value[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < kChunk; ++j) sums[lane][threadIdx.x % 32 * kChunk + j] = total[j];
  __syncthreads();
  const int64_t own = block * kColumns + threadIdx.x;
  if (own >= c.width) return;
  double sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += sums[i][threadIdx.x];
  if (c.slices > 1)
    partial[rest * c.width + own] = sum;
  else
    store_one<C>(y, at[1] + own * c.step_y, static_cast<C>(sum / divisor), accumulate);
}

template <class C>
__global__ void __launch_bounds__(kThreads)
    add_column_slices(const __grid_constant__ Loop<2> kept, const Side y, const __grid_constant__ Columns c,
                      const double* partial, double divisor, bool accumulate) {
  __shared__ double sums[8][33];
  const int64_t blocks = (c.width + 31) / 32;
  const int64_t index = blockIdx.x / blocks, column = blockIdx.x % blocks * 32 + threadIdx.x % 32;
  double sum = 0;
  if (column < c.width)
    for (int64_t i = threadIdx.x / 32; i < c.slices; i += 8) sum += partial[(index * c.slices + i) * c.width + column];
  sums[threadIdx.x / 32][threadIdx.x % 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32 || column >= c.width) return;
  sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += sums[i][threadIdx.x];
  int64_t at[2] = {0, 0};
  kept.locate_row(index, kept.ndim, at);
  store_one<C>(y, at[1] + column * c.step_y, static_cast<C>(sum / divisor), accumulate);
}

template <class Op>
class Sum : public ElementKernel {
 public:
  static constexpr std::string_view op = Op::name;
  static constexpr uint64_t flags = ElementKernel::accumulating;

  // dims: those to sum over, all where empty.
  explicit Sum(Plan plan) {
    const View x = plan.in(0);
    need_float(plan, x, "x");
    need_like(plan, plan.out(0), "y", x);
    if (plan.attrs().i64_list("dims").empty()) std::fill(reduced_, reduced_ + GESTALT_MAX_NDIM, true);
    for (int64_t dim : plan.attrs().i64_list("dims")) {
      if (dim < -x.ndim() || dim >= x.ndim())
        throw InvalidArgument(place(plan) + "dims: out of range, got " + std::to_string(dim) + " for x " + describe(x));
      reduced_[dim < 0 ? dim + x.ndim() : dim] = true;
    }
    int64_t kept = 1, summed = 1;
    for (int d = 0; d < x.ndim(); ++d) (reduced_[d] ? summed : kept) *= x.dim(d);
    // No more than what slices() makes of these or smaller sizes.
    plan.workspace(8 * static_cast<uint64_t>(std::min(
                           kMostBlocks * kColumns, kept * std::max(summed / kSliceRows, summed / kSliceChunks + 1))));
    run_ = for_compute_type(x.dtype(), &Sum::run_as<float>, &Sum::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  // Slices of a sum over n pieces where `blocks` blocks already have work.
  static int64_t slices(int64_t n, int64_t least, int64_t blocks) {
    return std::clamp<int64_t>(std::min(n / least, kMostBlocks / std::max<int64_t>(blocks, 1)), 1, kMostBlocks);
  }

  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), y = call.out(0);
    const bool kept_dims = y.ndim() == x.ndim();
    Loop<2> kept;   // offsets in x and y
    Loop<1> inner;  // offsets in x
    Columns c{.width = 0, .step_x = 0, .step_y = 0, .blocks = 0, .slices = 1};
    int y_dim = 0;
    for (int d = 0; d < x.ndim(); ++d) {
      const int own = kept_dims ? d : y_dim;
      if (!reduced_[d]) ++y_dim;
      if (reduced_[d]) {
        inner.append(x.dim(d), {x.stride(d)});
      } else if (d == x.ndim() - 1) {
        c.width = x.dim(d);
        c.step_x = x.stride(d);
        c.step_y = y.stride(own);
      } else {
        kept.append(x.dim(d), {x.stride(d), y.stride(own)});
      }
    }
    kept.close();
    inner.close();
    const double divisor = Op::mean ? static_cast<double>(inner.numel) : 1;
    if (y.numel() == 0) return;
    if (x.ndim() > 0 && !reduced_[x.ndim() - 1])
      down<C>(call, kept, inner, c, divisor);
    else
      along<C>(call, kept, inner, divisor);
    check_launch(op);
  }

  template <class C>
  void down(const Call& call, const Loop<2>& kept, const Loop<1>& inner, Columns c, double divisor) const {
    c.blocks = (c.width + kColumns - 1) / kColumns;
    c.slices = slices(inner.numel, kSliceRows, kept.numel * c.blocks);
    double* partial = static_cast<double*>(call.workspace());
    const Side x = side_of(call.in(0)), y = side_of(call.out(0));
    const auto blocks = static_cast<unsigned>(kept.numel * c.slices * c.blocks);
    cudaStream_t stream = stream_of(call);
    const bool add = call.accumulate(0);
    const bool rows = inner.ndim == 1 && has_packed_rows(call.in(0), call.in(0).dtype());
    if (sizeof(C) == 8 || !rows)
      sum_down<C, 0><<<blocks, kThreads, 0, stream>>>(kept, inner, x, y, c, partial, divisor, add);
    else if (x.size == 2)
      sum_down<C, 2><<<blocks, kThreads, 0, stream>>>(kept, inner, x, y, c, partial, divisor, add);
    else
      sum_down<C, 4><<<blocks, kThreads, 0, stream>>>(kept, inner, x, y, c, partial, divisor, add);
    if (c.slices > 1)
      add_column_slices<C><<<static_cast<unsigned>(kept.numel * ((c.width + 31) / 32)), kThreads, 0, stream_of(call)>>>(
          kept, y, c, partial, divisor, call.accumulate(0));
  }

  template <class C>
  void along(const Call& call, const Loop<2>& kept, const Loop<1>& inner, double divisor) const {
    const Side x = side_of(call.in(0)), y = side_of(call.out(0));
    const int64_t chunks = inner.chunks(), cut = slices(chunks, kSliceChunks, kept.numel);
    double* partial = static_cast<double*>(call.workspace());
    if (chunks <= 128) {
      sum_along<C, 32><<<blocks_for(kept.numel, kThreads / 32), kThreads, 0, stream_of(call)>>>(
          kept, inner, x, y, chunks, 1, nullptr, divisor, call.accumulate(0));
      return;
    }
    sum_along<C, kThreads><<<blocks_for(kept.numel * cut, 1), kThreads, 0, stream_of(call)>>>(
        kept, inner, x, y, chunks, cut, partial, divisor, call.accumulate(0));
    if (cut > 1)
      add_slices<C><<<blocks_for(kept.numel, kThreads / 32), kThreads, 0, stream_of(call)>>>(
          kept, y, cut, partial, divisor, call.accumulate(0));
  }

  bool reduced_[GESTALT_MAX_NDIM] = {};
  void (Sum::*run_)(Call) const;
};
GESTALT_KERNEL(Sum<SumOp>);
GESTALT_KERNEL(Sum<MeanOp>);

// One number of all elements: blocks take turns at chunks, a last block adds what they found in order.
struct Square {
  static constexpr std::string_view name = "core.sum_squares";
  static __device__ double of(double x) { return x * x; }
  static __device__ double result(double sum) { return sum; }
};
// Whether every element is a number: not infinite and not NaN.
struct Finite {
  static constexpr std::string_view name = "core.is_finite";
  static __device__ double of(double x) { return isfinite(x) ? 0 : 1; }
  static __device__ double result(double sum) { return sum == 0 ? 1 : 0; }
};

template <class C, class Op>
__global__ void __launch_bounds__(kThreads)
    whole_parts(const __grid_constant__ Loop<1> loop, const Side x, int64_t chunks, double* partial) {
  const int64_t step = loop.stride[loop.ndim - 1][0];
  double total = 0;
  for (int64_t chunk = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; chunk < chunks;
       chunk += static_cast<int64_t>(gridDim.x) * kThreads) {
    int64_t at[1];
    const int n = loop.locate(chunk, at);
    C value[kChunk];
    load_chunk(x, at[0], step, n, value);
#pragma unroll
    for (int j = 0; j < kChunk; ++j) total += Op::of(static_cast<double>(value[j]));
  }
  total = group_sum<kThreads>(total);
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

// One run of whole 16-byte words: four of them a thread are in flight.
template <int kBytes, class Op>
__global__ void __launch_bounds__(kThreads)
    packed_whole_parts(const uint4* x, bool half, int64_t words, double* partial) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  double total = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < words; i += 4 * step) {
    uint4 word[4];
#pragma unroll
    for (int u = 0; u < 4; ++u)
      if (i + u * step < words) word[u] = x[i + u * step];
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      if (i + u * step >= words) continue;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const uint32_t bits = word_of(word[u], j);
        if constexpr (kBytes == 4) {
          total += Op::of(static_cast<double>(__uint_as_float(bits)));
        } else {
          const float low =
              half ? __half2float(__ushort_as_half(static_cast<uint16_t>(bits))) : __uint_as_float(bits << 16);
          const float high = half ? __half2float(__ushort_as_half(static_cast<uint16_t>(bits >> 16)))
                                  : __uint_as_float(bits & 0xffff0000u);
          total += Op::of(static_cast<double>(low)) + Op::of(static_cast<double>(high));
        }
      }
    }
  }
  total = group_sum<kThreads>(total);
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

template <class Op>
__global__ void __launch_bounds__(kThreads) whole_total(const double* partial, int64_t parts, const Side y) {
  double total = 0;
  for (int64_t i = threadIdx.x; i < parts; i += kThreads) total += partial[i];
  total = group_sum<kThreads>(total);
  if (threadIdx.x == 0) store_one<double>(y, 0, Op::result(total));
}

template <class Op>
class Whole : public ElementKernel {
 public:
  static constexpr std::string_view op = Op::name;

  explicit Whole(Plan plan) {
    need_float(plan, plan.in(0), "x");
    plan.workspace(8 * kMostBlocks);
    run_ = for_compute_type(plan.in(0).dtype(), &Whole::run_as<float>, &Whole::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0);
    const Loop<1> loop = make_loop<1>(x, {x});
    const int64_t chunks = loop.chunks();
    const int64_t parts = std::min<int64_t>(kMostBlocks, (chunks + kThreads - 1) / kThreads);
    double* partial = static_cast<double*>(call.workspace());
    const int64_t bytes = x.numel() * size_of(x.dtype());
    const auto blocks = static_cast<unsigned>(parts);
    if (parts > 0 && packs(x.dtype()) && x.contiguous() && aligned(x.data<void>()) && bytes % 16 == 0) {
      if (size_of(x.dtype()) == 2)
        packed_whole_parts<2, Op>
            <<<blocks, kThreads, 0, stream_of(call)>>>(x.data<const uint4>(), x.is(kF16), bytes / 16, partial);
      else
        packed_whole_parts<4, Op>
            <<<blocks, kThreads, 0, stream_of(call)>>>(x.data<const uint4>(), false, bytes / 16, partial);
    } else if (parts > 0) {
      whole_parts<C, Op><<<blocks, kThreads, 0, stream_of(call)>>>(loop, side_of(x), chunks, partial);
    }
    whole_total<Op><<<1, kThreads, 0, stream_of(call)>>>(partial, parts, side_of(call.out(0)));
    check_launch(op);
  }

  void (Whole::*run_)(Call) const;
};
GESTALT_KERNEL(Whole<Square>);
GESTALT_KERNEL(Whole<Finite>);

}  // namespace
}  // namespace gestalt::kernels_cuda
