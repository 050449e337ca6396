#include "gestalt/philox.h"
#include "plugins/kernels_cuda/element_kernel.h"
#include "plugins/kernels_cuda/loop.cuh"
#include "plugins/kernels_cuda/packed.cuh"

// Random tensors and dropout: every number is a function of the seed, the step and its place, see gestalt/philox.h, so
// the bits are those of the CPU.
namespace gestalt::kernels_cuda {
namespace {

// Seed and step, from their four words in device memory.
struct SeedWords {
  Side side;
  int64_t step;
  __device__ uint64_t wide(int64_t i) const {
    const auto low = static_cast<uint32_t>(load_one<int64_t>(side, i * step));
    const auto high = static_cast<uint32_t>(load_one<int64_t>(side, (i + 1) * step));
    return low | static_cast<uint64_t>(high) << 32;
  }
};
SeedWords seed_words(View v) { return {side_of(v), v.stride(0)}; }

void need_seed(const Plan& plan, View seed) {
  need_dtype(plan, seed, "seed", {kI32});
  need_ndim(plan, seed, "seed", 1);
  need_dim(plan, seed, "seed", 0, 4);
}

struct Uniform {
  static constexpr std::string_view name = "core.uniform";
  static double offset(const Attrs& a) { return a.f64("low", 0); }
  static double factor(const Attrs& a) { return a.f64("high", 1) - a.f64("low", 0); }
  static __device__ double draw(uint32_t bits) { return static_cast<double>(philox_uniform(bits)); }
};
struct Normal {
  static constexpr std::string_view name = "core.normal";
  static double offset(const Attrs& a) { return a.f64("mean", 0); }
  static double factor(const Attrs& a) { return a.f64("std", 1); }
  static __device__ double draw(uint32_t bits) { return static_cast<double>(philox_normal_fixed(bits)) * 0x1p-28; }
};

// Element i of y, counted row by row; a thread draws the four of one block. The product and the sum are rounded one by
// one, as on the CPU.
template <class Op>
__global__ void __launch_bounds__(kThreads) draw(const __grid_constant__ Loop<1> loop, const Side y,
                                                 const SeedWords seed, uint32_t use, double offset, double factor) {
  const int64_t block = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (4 * block >= loop.numel) return;
  const PhiloxBlock bits = philox_tensor(seed.wide(0), seed.wide(2), use, static_cast<uint64_t>(block));
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int64_t i = 4 * block + j;
    if (i >= loop.numel) return;
    int64_t at[1] = {0};
    loop.locate_row(i, loop.ndim, at);
    store_one<double>(y, at[0], __dadd_rn(offset, __dmul_rn(factor, Op::draw(bits.word[j]))));
  }
}

template <class Op>
class Draw : public ElementKernel {
 public:
  static constexpr std::string_view op = Op::name;

  explicit Draw(Plan plan)
      : offset_(Op::offset(plan.attrs())), factor_(Op::factor(plan.attrs())), use_(plan.attrs().i64("use")) {
    need_seed(plan, plan.in(0));
    need_float(plan, plan.out(0), "y");
    if (use_ < 0 || use_ >= int64_t{1} << 32)
      throw InvalidArgument(place(plan) + "use: got " + std::to_string(use_) + ", expected 0 to 4294967295");
  }
  void run(Call call) const {
    const View y = call.out(0);
    const Loop<1> loop = make_loop<1>(y, {y});
    if (loop.numel == 0) return;
    draw<Op><<<blocks_for((loop.numel + 3) / 4), kThreads, 0, stream_of(call)>>>(
        loop, side_of(y), seed_words(call.in(0)), static_cast<uint32_t>(use_), offset_, factor_);
    check_launch(op);
  }

 private:
  double offset_, factor_;
  int64_t use_;
};
GESTALT_KERNEL(Draw<Uniform>);
GESTALT_KERNEL(Draw<Normal>);

struct DropoutArgs {
  Side x, y, keys;
  int64_t x_row, x_column, y_row, y_column, keys_row, keys_column;
  int64_t tokens, width, row_chunks, column0;
  SeedWords seed;
  uint32_t use, threshold;
};

// The key of a token's numbers.
struct TokenKey {
  uint64_t seed, step;
  uint32_t sample, position;
  __device__ TokenKey(const DropoutArgs& a, int64_t t)
      : seed(a.seed.wide(0)),
        step(a.seed.wide(2)),
        sample(static_cast<uint32_t>(load_one<int64_t>(a.keys, t * a.keys_row))),
        position(static_cast<uint32_t>(load_one<int64_t>(a.keys, t * a.keys_row + a.keys_column))) {}
  __device__ __forceinline__ PhiloxBlock block(uint32_t use, uint32_t column) const {
    return philox_token(seed, step, sample, position, use, column / 4);
  }
};

// One element a thread.
template <class C>
__global__ void __launch_bounds__(kThreads) dropout(const __grid_constant__ DropoutArgs a, C factor) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= a.tokens * a.width) return;
  const int64_t t = Loop<1>::divide(i, a.width), c = i - t * a.width;
  const auto column = static_cast<uint32_t>(a.column0 + c);
  const PhiloxBlock block = TokenKey(a, t).block(a.use, column);
  const uint32_t which = column % 4;
  const uint32_t word = which == 0   ? block.word[0]
                        : which == 1 ? block.word[1]
                        : which == 2 ? block.word[2]
                                     : block.word[3];
  const C x = load_one<C>(a.x, t * a.x_row + c * a.x_column);
  store_one<C>(a.y, t * a.y_row + c * a.y_column, word >> 8 < a.threshold ? C(0) : x * factor);
}

// Eight elements a thread, which are two whole blocks.
template <int kBytes>
__global__ void __launch_bounds__(kThreads) packed_dropout(const __grid_constant__ DropoutArgs a, float factor) {
  const int64_t chunk = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (chunk >= a.tokens * a.row_chunks) return;
  const int64_t t = Loop<1>::divide(chunk, a.row_chunks), first = (chunk - t * a.row_chunks) * kChunk;
  const bool half = a.x.dtype == GESTALT_F16;
  Packed<kBytes> packed;
  packed.load(a.x.data + (t * a.x_row + first) * kBytes);
  const TokenKey key(a, t);
  const auto column = static_cast<uint32_t>(a.column0 + first);
  const PhiloxBlock blocks[2] = {key.block(a.use, column), key.block(a.use, column + 4)};
  float x[kChunk];
  packed.unpack(half, x);
#pragma unroll
  for (int j = 0; j < kChunk; ++j) x[j] = blocks[j / 4].word[j % 4] >> 8 < a.threshold ? 0.0f : x[j] * factor;
  store_packed<kBytes>(a.y.data + (t * a.y_row + first) * kBytes, half, x);
}

// y = x / (1 - p) where a uniform number is at least p, else 0. The number is a function of (seed, step, sample,
// position, use, column0 + column), so the same op on dy is the gradient.
class Dropout : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.dropout";

  explicit Dropout(Plan plan)
      : p_(plan.attrs().f64("p")), use_(plan.attrs().i64("use")), column0_(plan.attrs().i64("column0", 0)) {
    const View x = plan.in(0), keys = plan.in(1);
    need_float(plan, x, "x");
    need_ndim(plan, x, "x", 2);
    need_dtype(plan, keys, "keys", {kI32});
    need_ndim(plan, keys, "keys", 2);
    need_dim(plan, keys, "keys", 0, x.dim(0));
    need_dim(plan, keys, "keys", 1, 2);
    need_seed(plan, plan.in(2));
    if (!(p_ >= 0 && p_ < 1))
      throw InvalidArgument(place(plan) + "p: got " + std::to_string(p_) + ", expected 0 <= p < 1");
    if (use_ < 0 || use_ >= 4096)
      throw InvalidArgument(place(plan) + "use: got " + std::to_string(use_) + ", expected 0 to 4095");
    if (column0_ < 0 || column0_ + x.dim(1) > int64_t{1} << 22)
      throw InvalidArgument(place(plan) + "column0: got " + std::to_string(column0_) + ", expected 0 to " +
                            std::to_string((int64_t{1} << 22) - x.dim(1)));
    run_ = for_compute_type(x.dtype(), &Dropout::run_as<float>, &Dropout::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), keys = call.in(1), y = call.out(0);
    if (x.numel() == 0) return;
    const DropoutArgs a{.x = side_of(x),
                        .y = side_of(y),
                        .keys = side_of(keys),
                        .x_row = x.stride(0),
                        .x_column = x.stride(1),
                        .y_row = y.stride(0),
                        .y_column = y.stride(1),
                        .keys_row = keys.stride(0),
                        .keys_column = keys.stride(1),
                        .tokens = x.dim(0),
                        .width = x.dim(1),
                        .row_chunks = (x.dim(1) + kChunk - 1) / kChunk,
                        .column0 = column0_,
                        .seed = seed_words(call.in(2)),
                        .use = static_cast<uint32_t>(use_),
                        .threshold = philox_threshold(p_)};
    const double factor = 1 / (1 - p_);
    const unsigned chunk_blocks = blocks_for(a.tokens * a.row_chunks);
    if (sizeof(C) == 8 || column0_ % 4 != 0 || !has_packed_rows(x, x.dtype()) || !has_packed_rows(y, x.dtype()))
      dropout<C><<<blocks_for(a.tokens * a.width), kThreads, 0, stream_of(call)>>>(a, static_cast<C>(factor));
    else if (size_of(x.dtype()) == 2)
      packed_dropout<2><<<chunk_blocks, kThreads, 0, stream_of(call)>>>(a, static_cast<float>(factor));
    else
      packed_dropout<4><<<chunk_blocks, kThreads, 0, stream_of(call)>>>(a, static_cast<float>(factor));
    check_launch(op);
  }

  double p_;
  int64_t use_, column0_;
  void (Dropout::*run_)(Call) const;
};
GESTALT_KERNEL(Dropout);

}  // namespace
}  // namespace gestalt::kernels_cuda
