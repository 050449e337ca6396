#include <cub/device/device_radix_sort.cuh>

#include "plugins/kernels_cuda/copy.cuh"
#include "plugins/kernels_cuda/element_kernel.h"
#include "plugins/kernels_cuda/loop.cuh"

// Rows by number, and the sum of rows of the same number. The sum sorts the tokens by their number (stable, so equal
// ones keep their order), then adds windows of 32 sorted tokens each: a run of equal numbers inside a window goes
// straight to its row, and the parts of runs that cross windows are added by the window where the run begins. No
// floating-point atomics: the bits are the same every time.
namespace gestalt::kernels_cuda {
namespace {

// Which inputs are the ids and the rows of numbers, in both ops of a pair, and their names.
struct EmbeddingOp {
  static constexpr std::string_view name = "core.embedding", backward_name = "core.embedding_bwd";
  static constexpr std::string_view table = "w", rows = "dy";
  static constexpr uint64_t ids = 0, numbers = 1;
};
struct GatherOp {
  static constexpr std::string_view name = "core.gather_rows", backward_name = "core.scatter_add_rows";
  static constexpr std::string_view table = "x", rows = "x";
  static constexpr uint64_t ids = 1, numbers = 0;
};

// A matrix as an argument of a kernel.
struct Table {
  Side side;
  int64_t row, column, rows, width;
};
Table table_of(View v) { return {side_of(v), v.stride(0), v.stride(1), v.dim(0), v.dim(1)}; }

__device__ __forceinline__ int count_at(const Table& t, int64_t column) {
  return t.width - column < kChunk ? static_cast<int>(t.width - column) : kChunk;
}

// An id outside the table gives NaN.
template <class C>
__global__ void __launch_bounds__(kThreads) gather(const Side ids, int64_t ids_step, const __grid_constant__ Table w,
                                                   const __grid_constant__ Table y, int64_t row_chunks) {
  const int64_t chunk = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (chunk >= y.rows * row_chunks) return;
  const int64_t t = chunk / row_chunks, column = chunk % row_chunks * kChunk;
  const int n = count_at(y, column);
  const int64_t id = load_one<int64_t>(ids, t * ids_step);
  C x[kChunk];
  if (id >= 0 && id < w.rows) {
    load_chunk(w.side, id * w.row + column * w.column, w.column, n, x);
  } else {
#pragma unroll
    for (int j = 0; j < kChunk; ++j) x[j] = not_a_number<C>();
  }
  store_chunk(y.side, t * y.row + column * y.column, y.column, n, x);
}

// y[t] = w[ids[t]].
template <class Op>
class Embedding : public ElementKernel {
 public:
  static constexpr std::string_view op = Op::name;

  explicit Embedding(Plan plan) {
    const View ids = plan.in(Op::ids), w = plan.in(Op::numbers);
    need_index(plan, ids, "ids");
    need_ndim(plan, ids, "ids", 1);
    need_float(plan, w, Op::table);
    need_ndim(plan, w, Op::table, 2);
    run_ = for_compute_type(w.dtype(), &Embedding::run_as<float>, &Embedding::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View ids = call.in(Op::ids), y = call.out(0);
    const int64_t row_chunks = (y.dim(1) + kChunk - 1) / kChunk;
    if (y.numel() == 0) return;
    gather<C><<<blocks_for(y.dim(0) * row_chunks), kThreads, 0, stream_of(call)>>>(
        side_of(ids), ids.stride(0), table_of(call.in(Op::numbers)), table_of(y), row_chunks);
    check_launch(op);
  }

  void (Embedding::*run_)(Call) const;
};
GESTALT_KERNEL(Embedding<EmbeddingOp>);
GESTALT_KERNEL(Embedding<GatherOp>);

constexpr int kWindow = 32;

// Sort keys and tokens; an id outside the table becomes `vocab`, which comes last and is left out.
__global__ void __launch_bounds__(kThreads)
    make_keys(const Side ids, int64_t step, int64_t n, int64_t vocab, uint32_t* keys, uint32_t* tokens) {
  const int64_t t = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (t >= n) return;
  const int64_t id = load_one<int64_t>(ids, t * step);
  keys[t] = static_cast<uint32_t>(id >= 0 && id < vocab ? id : vocab);
  tokens[t] = static_cast<uint32_t>(t);
}

// One chunk of columns a thread, one window a block row. parts: of each window the sum of the run that came in from
// before (0) and of the run that goes on after (1); one that does both is in 0.
template <class C>
__global__ void __launch_bounds__(kThreads)
    add_windows(const uint32_t* keys, const uint32_t* tokens, int64_t n, const __grid_constant__ Table dy,
                const __grid_constant__ Table dw, C* parts, int64_t pitch, bool accumulate) {
  const int64_t window = blockIdx.x, first = window * kWindow, last = min(n, first + kWindow);
  const int64_t column = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * kChunk;
  if (column >= dw.width) return;
  const int count = count_at(dw, column);
  const uint32_t before = first > 0 ? keys[first - 1] : 0xffffffffu, after = last < n ? keys[last] : 0xffffffffu;
  C sum[kChunk] = {};
  for (int64_t i = first; i < last;) {
    const uint32_t key = keys[i];
    if (key >= dw.rows) return;
    int64_t end = i;
    // Four rows at a time are in flight.
    for (; end < last && keys[end] == key; end += 4) {
      Held<C> held[4];
      int64_t at[4];
      bool own[4];
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        own[u] = end + u < last && keys[end + u] == key;
        at[u] = own[u] ? tokens[end + u] * dy.row + column * dy.column : 0;
        if (own[u]) fetch(dy.side, at[u], dy.column, count, held[u]);
      }
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        if (!own[u]) continue;
        C x[kChunk];
        unpack(dy.side, at[u], dy.column, count, held[u], x);
#pragma unroll
        for (int j = 0; j < kChunk; ++j) sum[j] += x[j];
      }
    }
    while (end > last || keys[end - 1] != key) --end;
    const bool enters = i == first && before == key, leaves = end == last && after == key;
    if (enters || leaves) {
      C* part = parts + (2 * window + (enters ? 0 : 1)) * pitch + column;
#pragma unroll
      for (int j = 0; j < kChunk; ++j) part[j] = sum[j];
    } else {
      store_chunk(dw.side, key * dw.row + column * dw.column, dw.column, count, sum, accumulate);
    }
#pragma unroll
    for (int j = 0; j < kChunk; ++j) sum[j] = C(0);
    i = end;
  }
}

// The runs that cross windows: by the window where each begins.
template <class C>
__global__ void __launch_bounds__(kThreads)
    add_crossing(const uint32_t* keys, int64_t n, const __grid_constant__ Table dw, const C* parts, int64_t pitch,
                 bool accumulate) {
  const int64_t window = blockIdx.x, last = min(n, (window + 1) * kWindow);
  if (last >= n) return;
  const uint32_t key = keys[last - 1];
  if (key >= dw.rows || keys[last] != key) return;
  const int64_t first = window * kWindow;
  if (first > 0 && keys[first] == key && keys[first - 1] == key) return;  // began earlier
  const int64_t column = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * kChunk;
  if (column >= dw.width) return;
  C sum[kChunk];
  const C* part = parts + (2 * window + 1) * pitch + column;
#pragma unroll
  for (int j = 0; j < kChunk; ++j) sum[j] = part[j];
  for (int64_t next = window + 1; next * kWindow < n && keys[next * kWindow] == key; ++next) {
    part = parts + 2 * next * pitch + column;
#pragma unroll
    for (int j = 0; j < kChunk; ++j) sum[j] += part[j];
  }
  store_chunk(dw.side, key * dw.row + column * dw.column, dw.column, count_at(dw, column), sum, accumulate);
}

// dw[v] = sum of dy[t] over the tokens with ids[t] = v.
template <class Op>
class EmbeddingBwd : public ElementKernel {
 public:
  static constexpr std::string_view op = Op::backward_name;
  static constexpr uint64_t flags = ElementKernel::accumulating;

  explicit EmbeddingBwd(Plan plan) {
    const View ids = plan.in(Op::ids), dy = plan.in(Op::numbers), dw = plan.out(0);
    need_index(plan, ids, "ids");
    need_ndim(plan, ids, "ids", 1);
    need_float(plan, dy, Op::rows);
    need_ndim(plan, dy, Op::rows, 2);
    need_dim(plan, dy, Op::rows, 0, ids.dim(0));
    need_like(plan, dw, "y", dy);
    need_ndim(plan, dw, "y", 2);
    need_dim(plan, dw, "y", 1, dy.dim(1));
    tokens_ = ids.dim(0);
    if (tokens_ >= int64_t{1} << 31 || dw.dim(0) >= int64_t{1} << 31)
      throw Unsupported(place(plan) + "ids: more than 2^31 tokens or rows, got " + describe(ids) + " and " +
                        describe(dw));
    check_cuda(sort(nullptr, &sort_bytes_, nullptr, tokens_, 31, nullptr), op);
    plan.workspace(parts_at(tokens_) + windows(tokens_) * 2 * pitch(dw.dim(1)) * (dy.is(kF64) ? 8 : 4), 256);
    run_ = for_compute_type(dy.dtype(), &EmbeddingBwd::run_as<float>, &EmbeddingBwd::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  static uint64_t windows(int64_t n) { return static_cast<uint64_t>((n + kWindow - 1) / kWindow); }
  static uint64_t pitch(int64_t width) { return static_cast<uint64_t>((width + kChunk - 1) / kChunk * kChunk); }
  static uint64_t padded(uint64_t bytes) { return (bytes + 255) / 256 * 256; }
  // Workspace: four arrays of a word a token, what the sort needs, the parts.
  static uint64_t array_bytes(int64_t n) { return padded(static_cast<uint64_t>(n) * 4); }
  uint64_t parts_at(int64_t n) const { return 4 * array_bytes(n) + padded(sort_bytes_); }

  static cudaError_t sort(void* scratch, size_t* bytes, uint32_t* const* arrays, int64_t n, int bits,
                          cudaStream_t stream) {
    uint32_t* none[4] = {};
    if (arrays == nullptr) arrays = none;
    return cub::DeviceRadixSort::SortPairs(scratch, *bytes, arrays[0], arrays[1], arrays[2], arrays[3],
                                           static_cast<int>(n), 0, bits, stream);
  }

  template <class C>
  void run_as(Call call) const {
    const View ids = call.in(Op::ids), dy = call.in(Op::numbers), dw = call.out(0);
    const int64_t n = ids.dim(0);
    const bool accumulate = call.accumulate(0);
    if (!accumulate) zero_elements(call, op, dw);
    if (n == 0 || dw.numel() == 0) return;
    cudaStream_t stream = stream_of(call);
    char* at = static_cast<char*>(call.workspace());
    uint32_t* arrays[4];  // keys, sorted keys, tokens, sorted tokens
    for (uint32_t*& array : arrays) {
      array = reinterpret_cast<uint32_t*>(at);
      at += array_bytes(tokens_);
    }
    C* parts = reinterpret_cast<C*>(static_cast<char*>(call.workspace()) + parts_at(tokens_));
    make_keys<<<blocks_for(n), kThreads, 0, stream>>>(side_of(ids), ids.stride(0), n, dw.dim(0), arrays[0], arrays[2]);
    int bits = 1;
    while (dw.dim(0) >> bits != 0) ++bits;
    size_t bytes = sort_bytes_;
    check_cuda(sort(at, &bytes, arrays, n, bits, stream), op);
    const int64_t chunks = (dw.dim(1) + kChunk - 1) / kChunk;
    const int threads = static_cast<int>(std::min<int64_t>(kThreads, (chunks + 31) / 32 * 32));
    const dim3 grid(static_cast<unsigned>(windows(n)), blocks_for(chunks, threads));
    const auto step = static_cast<int64_t>(pitch(dw.dim(1)));
    add_windows<C>
        <<<grid, threads, 0, stream>>>(arrays[1], arrays[3], n, table_of(dy), table_of(dw), parts, step, accumulate);
    add_crossing<C><<<grid, threads, 0, stream>>>(arrays[1], n, table_of(dw), parts, step, accumulate);
    check_launch(op);
  }

  int64_t tokens_;
  size_t sort_bytes_ = 0;
  void (EmbeddingBwd::*run_)(Call) const;
};
GESTALT_KERNEL(EmbeddingBwd<EmbeddingOp>);
GESTALT_KERNEL(EmbeddingBwd<GatherOp>);

}  // namespace
}  // namespace gestalt::kernels_cuda
