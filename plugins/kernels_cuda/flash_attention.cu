// core.attention on the tensor cores: a block is 64 queries of one head, 16 a warp; keys come in tiles of 64, the next one
// on its way while the last is used.
#include "plugins/kernels_cuda/flash_tiles.cuh"

namespace gestalt::kernels_cuda {
namespace {

constexpr int kKeys = 64;

template <class T, int D>
struct Memory {
  T q[kFlashRows * (D + kFlashPad)];
  T k[2][kKeys * (D + kFlashPad)], v[2][kKeys * (D + kFlashPad)];
  BlockRanges ranges;
};

template <class T, int D>
__global__ void __launch_bounds__(kFlashThreads)
    attend(FlashPlan plan, FlashView q, FlashView k, FlashView v, FlashView o, FlashView lse) {
  extern __shared__ __align__(16) unsigned char raw[];
  auto& memory = *reinterpret_cast<Memory<T, D>*>(raw);
  const int64_t head = blockIdx.y, key_head = head / (plan.heads / plan.key_heads);
  // The last rows see the most keys, so they begin first.
  const int64_t row0 = static_cast<int64_t>(gridDim.x - 1 - blockIdx.x) * kFlashRows;
  find_ranges(plan, row0, true, memory.ranges);
  const Segment any = memory.ranges.any, every = memory.ranges.every;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int g = lane / 4, p = lane % 4;
  const float scale = plan.scale * kLog2e;

  float sum[D / 8][4] = {};
  float top[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
  const auto fetch = [&](int64_t from, int stage) {
    load_tile<T, kKeys, D>(memory.k[stage], k, key_head, from, any.last);
    load_tile<T, kKeys, D>(memory.v[stage], v, key_head, from, any.last);
    commit_loads();
  };
  load_tile<T, kFlashRows, D>(memory.q, q, head, row0, plan.tokens);
  if (any.first < any.last) fetch(any.first, 0);
  int stage = 0;
  for (int64_t from = any.first; from < any.last; from += kKeys, stage ^= 1) {
    if (from + kKeys < any.last) {
      fetch(from + kKeys, stage ^ 1);
      wait_loads<1>();
    } else {
      wait_loads<0>();
    }
    __syncthreads();
    float s[kKeys / 8][4] = {};
    multiply_turned<T, kKeys, D>(s, memory.q + warp * 16 * (D + kFlashPad), memory.k[stage]);
    const bool masked = from < every.first || from + kKeys > every.last;
    float high[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        s[j][e] *= scale;
        if (masked && !sees(memory.ranges, from, warp * 16 + g + e / 2 * 8, j * 8 + 2 * p + e % 2)) s[j][e] = -INFINITY;
        high[e / 2] = fmaxf(high[e / 2], s[j][e]);
      }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      high[h] = fmaxf(high[h], __shfl_xor_sync(0xffffffffu, high[h], 1));
      high[h] = fmaxf(high[h], __shfl_xor_sync(0xffffffffu, high[h], 2));
      high[h] = fmaxf(high[h], top[h]);
      const float shrink = top[h] == -INFINITY ? 0.0f : exp2f(top[h] - high[h]);
      top[h] = high[h];
      total[h] *= shrink;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        sum[n][2 * h] *= shrink;
        sum[n][2 * h + 1] *= shrink;
      }
    }
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        s[j][e] = s[j][e] == -INFINITY ? 0.0f : exp2f(s[j][e] - top[e / 2]);
        total[e / 2] += s[j][e];
      }
    multiply_weights<T, kKeys, D>(sum, s, memory.v[stage]);
    __syncthreads();
  }
  wait_loads<0>();
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    total[h] += __shfl_xor_sync(0xffffffffu, total[h], 1);
    total[h] += __shfl_xor_sync(0xffffffffu, total[h], 2);
    const int64_t row = row0 + warp * 16 + g + h * 8;
    // A token that no segment covers has zeros.
    if (p == 0 && row < plan.tokens)
      static_cast<float*>(lse.data)[row * lse.token + head * lse.head] =
          total[h] > 0 ? top[h] * kLn2 + logf(total[h]) : 0.0f;
  }
  store_rows<T, D>(o, head, row0 + warp * 16, plan.tokens, sum, total[0] > 0 ? 1 / total[0] : 0.0f,
                   total[1] > 0 ? 1 / total[1] : 0.0f);
}

template <class T, int D>
void launch(const FlashPlan& plan, Call call) {
  attend<T, D><<<dim3(blocks_for(plan.tokens, kFlashRows), static_cast<unsigned>(plan.heads)), kFlashThreads,
                 sizeof(Memory<T, D>), stream_of(call)>>>(plan, flash_view(call.in(0)), flash_view(call.in(1)),
                                                          flash_view(call.in(2)), flash_view(call.out(0)),
                                                          flash_view(call.out(1)));
}

class FlashAttention : public CudaKernel {
 public:
  static constexpr std::string_view op = "core.attention", backend = "gestalt.flash";
  static constexpr uint64_t flags = CudaKernel::strided;

  explicit FlashAttention(Plan plan) : shape_(plan, 4) {
    need_dtype(plan, plan.out(0), "o", {plan.in(0).dtype()});
    need_dtype(plan, plan.out(1), "lse", {kF32});
    const auto choose = [&](auto type) {
      using T = typename decltype(type)::T;
      if (plan.in(0).dim(2) == 64)
        use<T, 64>();
      else
        use<T, 128>();
    };
    if (plan.in(0).is(kBF16))
      choose(Type<__nv_bfloat16>{});
    else
      choose(Type<__half>{});
  }
  void run(Call call) const {
    const FlashPlan plan = shape_.of(call);
    if (plan.tokens == 0) return;
    launch_(plan, call);
    check_launch(op);
  }

 private:
  template <class T, int D>
  void use() {
    check_cuda(cudaFuncSetAttribute(attend<T, D>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Memory<T, D>)), op);
    launch_ = launch<T, D>;
  }

  FlashShape shape_;
  void (*launch_)(const FlashPlan&, Call) = nullptr;
};
GESTALT_KERNEL(FlashAttention);

}  // namespace
}  // namespace gestalt::kernels_cuda
