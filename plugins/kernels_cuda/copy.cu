#include "plugins/kernels_cuda/copy.cuh"

#include "plugins/kernels_cuda/element_kernel.h"
#include "plugins/kernels_cuda/elementwise.cuh"
#include "plugins/kernels_cuda/part.h"

namespace gestalt::kernels_cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kThreads)
    copy_kernel(const __grid_constant__ Loop<2> loop, const T* from, T* to, int64_t chunks) {
  const int64_t chunk = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (chunk >= chunks) return;
  int64_t at[2];
  const int n = loop.locate(chunk, at);
  const int64_t step = loop.stride[loop.ndim - 1][0], to_step = loop.stride[loop.ndim - 1][1];
  const T* p = from + at[0];
  T* q = to + at[1];
  constexpr int kWords = sizeof(T) * kChunk / 16;
  if constexpr (kWords > 0) {
    if (step == 1 && to_step == 1 && n == kChunk && (reinterpret_cast<uintptr_t>(p) & 15) == 0 &&
        (reinterpret_cast<uintptr_t>(q) & 15) == 0) {
      uint4 word[kWords];
#pragma unroll
      for (int i = 0; i < kWords; ++i) word[i] = reinterpret_cast<const uint4*>(p)[i];
#pragma unroll
      for (int i = 0; i < kWords; ++i) reinterpret_cast<uint4*>(q)[i] = word[i];
      return;
    }
  }
  T value[kChunk];
#pragma unroll
  for (int j = 0; j < kChunk; ++j)
    if (j < n) value[j] = p[j * step];
#pragma unroll
  for (int j = 0; j < kChunk; ++j)
    if (j < n) q[j * to_step] = value[j];
}

// Two dimensions change places: squares go through shared memory, so that reads follow one and writes the other.
constexpr int kSquare = 32;

struct Swap {
  int64_t rows, columns;        // rows: neighbours in `from`; columns: neighbours in `to`
  int64_t from_column, to_row;  // the other strides
  int64_t row_squares, column_squares;
};

template <class T>
__global__ void __launch_bounds__(kSquare * 8)
    transpose_kernel(const __grid_constant__ Loop<2> outer, const __grid_constant__ Swap swap, const T* from, T* to) {
  __shared__ T square[kSquare][kSquare + 1];
  const int64_t block = blockIdx.x;
  const int64_t row0 = block % swap.row_squares * kSquare;
  const int64_t column0 = block / swap.row_squares % swap.column_squares * kSquare;
  int64_t at[2] = {0, 0};
  outer.locate_row(block / swap.row_squares / swap.column_squares, outer.ndim, at);
  const int x = threadIdx.x, y = threadIdx.y;
  for (int j = y; j < kSquare; j += 8)
    if (row0 + x < swap.rows && column0 + j < swap.columns)
      square[j][x] = from[at[0] + row0 + x + (column0 + j) * swap.from_column];
  __syncthreads();
  for (int j = y; j < kSquare; j += 8)
    if (row0 + j < swap.rows && column0 + x < swap.columns)
      to[at[1] + (row0 + j) * swap.to_row + column0 + x] = square[x][j];
}

template <class T>
bool transpose(cudaStream_t stream, const Loop<2>& loop, const T* from, T* to) {
  const int last = loop.ndim - 1;
  if (last < 1 || loop.stride[last][1] != 1 || loop.stride[last][0] == 1) return false;
  int d = 0;
  while (d < last && loop.stride[d][0] != 1) ++d;
  if (d == last || loop.shape[d] < 8 || loop.shape[last] < 8) return false;
  Loop<2> outer;
  for (int i = 0; i < last; ++i)
    if (i != d) outer.append(loop.shape[i], {loop.stride[i][0], loop.stride[i][1]});
  outer.close();
  const Swap swap{.rows = loop.shape[d],
                  .columns = loop.shape[last],
                  .from_column = loop.stride[last][0],
                  .to_row = loop.stride[d][1],
                  .row_squares = (loop.shape[d] + kSquare - 1) / kSquare,
                  .column_squares = (loop.shape[last] + kSquare - 1) / kSquare};
  const int64_t blocks = outer.numel * swap.row_squares * swap.column_squares;
  transpose_kernel<T><<<static_cast<unsigned>(blocks), dim3(kSquare, 8), 0, stream>>>(outer, swap, from, to);
  return true;
}

template <class T>
void copy_as(cudaStream_t stream, View from, View to) {
  const Loop<2> loop = make_loop<2>(to, {from, to});
  const int64_t chunks = loop.chunks();
  if (chunks == 0) return;
  if (transpose<T>(stream, loop, from.data<const T>(), to.data<T>())) return;
  copy_kernel<T><<<blocks_for(chunks), kThreads, 0, stream>>>(loop, from.data<const T>(), to.data<T>(), chunks);
}

template <class C>
struct Zero {
  __device__ void operator()(const C (&)[1], C (&out)[1]) const { out[0] = C(0); }
};

}  // namespace

void copy_elements(const Call& call, std::string_view op, View from, View to) {
  switch (size_of(to.dtype())) {
    case 8:
      copy_as<uint64_t>(stream_of(call), from, to);
      break;
    case 4:
      copy_as<uint32_t>(stream_of(call), from, to);
      break;
    case 2:
      copy_as<uint16_t>(stream_of(call), from, to);
      break;
    default:
      copy_as<uint8_t>(stream_of(call), from, to);
  }
  check_launch(op);
}

void zero_elements(const Call& call, std::string_view op, View to) {
  if (to.numel() == 0) return;
  if (to.contiguous())
    return check_cuda(
        cudaMemsetAsync(to.data<void>(), 0, static_cast<size_t>(to.numel() * size_of(to.dtype())), stream_of(call)),
        op);
  convert<float, 0, 1>(call, op, {}, {to}, false, Zero<float>());
}

namespace {

struct CopyOp {
  static constexpr std::string_view name = "core.copy";
};
struct CastOp {
  static constexpr std::string_view name = "core.cast";
};

struct Same {
  template <class C>
  __device__ void operator()(const C (&in)[1], C (&out)[1]) const {
    out[0] = in[0];
  }
};

// Bit by bit between equal types. Else, or where y is added to, through the narrowest type that holds both ends
// exactly: int64_t from integers, float between 32 bits and fewer.
template <class Op>
class Move : public ElementKernel {
 public:
  static constexpr std::string_view op = Op::name;
  static constexpr uint64_t flags = ElementKernel::accumulating;

  explicit Move(Plan plan) {
    const View x = plan.in(0), y = plan.out(0);
    need_any(plan, x, "x");
    need_any(plan, y, "y");
    need_same_shape(plan, y, "y", x);
    if (!is_floating(x.dtype()) && !(is_floating(y.dtype()) && plan.may_accumulate(0)))
      run_ = &Move::run_as<int64_t>;
    else if (!is_floating(x.dtype()) || x.is(kF64) || y.is(kF64) || !is_floating(y.dtype()))
      run_ = &Move::run_as<double>;
    else
      run_ = &Move::run_as<float>;
  }
  void run(Call call) const {
    if (call.in(0).is(call.out(0).dtype()) && !call.accumulate(0))
      copy_elements(call, op, call.in(0), call.out(0));
    else
      (this->*run_)(call);
  }

 private:
  template <class C>
  void run_as(Call call) const {
    convert<C, 1, 1>(call, op, {call.in(0)}, {call.out(0)}, call.accumulate(0), Same());
  }

  void (Move::*run_)(Call) const;
};
GESTALT_KERNEL(Move<CopyOp>);
GESTALT_KERNEL(Move<CastOp>);

// The attribute `dim`, counted from the front.
int dim_of(const Plan& plan, int ndim) {
  const int64_t dim = plan.attrs().i64("dim");
  if (dim < -ndim || dim >= ndim)
    throw InvalidArgument(place(plan) + "dim: out of range, got " + std::to_string(dim) + ", expected -" +
                          std::to_string(ndim) + " to " + std::to_string(ndim - 1));
  return static_cast<int>(dim < 0 ? dim + ndim : dim);
}

class Concat : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.concat";

  explicit Concat(Plan plan) : num_in_(plan.num_in()), dim_(dim_of(plan, plan.out(0).ndim())) {
    for (uint64_t i = 0; i < num_in_; ++i) {
      need_any(plan, plan.in(i), "x");
      need_dtype(plan, plan.in(i), "x", {plan.out(0).dtype()});
      need_ndim(plan, plan.in(i), "x", plan.out(0).ndim());
    }
  }
  void run(Call call) const {
    int64_t begin = 0;
    for (uint64_t i = 0; i < num_in_; ++i) {
      const int64_t size = call.in(i).dim(dim_);
      copy_elements(call, op, call.in(i), Part(call.out(0), dim_, begin, size).view());
      begin += size;
    }
  }

 private:
  uint64_t num_in_;
  int dim_;
};
GESTALT_KERNEL(Concat);

// Zeros before and after x in one dimension.
class Pad : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.pad";

  explicit Pad(Plan plan) : dim_(dim_of(plan, plan.in(0).ndim())), before_(plan.attrs().i64("before")) {
    need_any(plan, plan.in(0), "x");
    need_dtype(plan, plan.out(0), "y", {plan.in(0).dtype()});
    need_dim(plan, plan.out(0), "y", dim_, plan.in(0).dim(dim_) + before_ + plan.attrs().i64("after"));
  }
  void run(Call call) const {
    const View x = call.in(0), y = call.out(0);
    const int64_t end = before_ + x.dim(dim_);
    zero_elements(call, op, Part(y, dim_, 0, before_).view());
    copy_elements(call, op, x, Part(y, dim_, before_, x.dim(dim_)).view());
    zero_elements(call, op, Part(y, dim_, end, y.dim(dim_) - end).view());
  }

 private:
  int dim_;
  int64_t before_;
};
GESTALT_KERNEL(Pad);

}  // namespace
}  // namespace gestalt::kernels_cuda
