// core.attention on the tensor cores: a block is 64 or 128 queries of one head, 16 or 32 a warp; keys come in tiles of
// 64, the next one on its way while the last is used.
#include "plugins/kernels_cuda/flash_tiles.cuh"

namespace gestalt::kernels_cuda {
namespace {

constexpr int kKeys = 64;
// Accumulators of 16 queries that a warp has; those of 128 features leave room for one.
template <int D>
constexpr int kTall = D == 64 ? 2 : 1;
template <int D>
constexpr int kQueries = 16 * kFlashWarps* kTall<D>;

template <class T, int D>
struct Memory {
  T q[kQueries<D> * (D + kFlashPad)];
  T k[2][kKeys * (D + kFlashPad)], v[2][kKeys * (D + kFlashPad)];
  BlockRanges<kQueries<D>> ranges;
};

template <class T, int D>
__global__ void __launch_bounds__(kFlashThreads)
    attend(FlashPlan plan, FlashView q, FlashView k, FlashView v, FlashView o, FlashView lse) {
  extern __shared__ __align__(16) unsigned char raw[];
  auto& memory = *reinterpret_cast<Memory<T, D>*>(raw);
  const int64_t head = blockIdx.y, key_head = head / (plan.heads / plan.key_heads);
  // The last rows see the most keys, so they begin first.
  constexpr int R = kTall<D>;
  const int64_t row0 = static_cast<int64_t>(gridDim.x - 1 - blockIdx.x) * kQueries<D>;
  find_ranges(plan, row0, true, memory.ranges);
  const Segment any = memory.ranges.any, every = memory.ranges.every;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int g = lane / 4, p = lane % 4, own = warp * 16 * R;
  const float scale = plan.scale * kLog2e;

  float sum[R][D / 8][4] = {};
  float top[R][2], total[R][2] = {};
#pragma unroll
  for (int r = 0; r < R; ++r) top[r][0] = top[r][1] = -INFINITY;
  const auto fetch = [&](int64_t from, int stage) {
    load_tile<T, kKeys, D>(memory.k[stage], k, key_head, from, any.last);
    load_tile<T, kKeys, D>(memory.v[stage], v, key_head, from, any.last);
    commit_loads();
  };
  load_tile<T, kQueries<D>, D>(memory.q, q, head, row0, plan.tokens);
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
    float s[R][kKeys / 8][4] = {};
    multiply_turned<T, kKeys, D, R>(s, memory.q + own * (D + kFlashPad), memory.k[stage]);
    const bool masked = from < every.first || from + kKeys > every.last;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      float high[2] = {-INFINITY, -INFINITY};
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          float& score = s[r][j][e];
          score *= scale;
          if (masked && !sees(memory.ranges, from, own + 16 * r + g + e / 2 * 8, j * 8 + 2 * p + e % 2))
            score = -INFINITY;
          high[e / 2] = fmaxf(high[e / 2], score);
        }
      float base[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        high[h] = fmaxf(high[h], __shfl_xor_sync(0xffffffffu, high[h], 1));
        high[h] = fmaxf(high[h], __shfl_xor_sync(0xffffffffu, high[h], 2));
        high[h] = fmaxf(high[h], top[r][h]);
        // A row that has seen nothing has only scores of -inf, whose weights are 0 from any finite base.
        base[h] = high[h] == -INFINITY ? 0.0f : high[h];
        const float shrink = power_of_two(top[r][h] - base[h]);
        top[r][h] = high[h];
        total[r][h] *= shrink;
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
          sum[r][n][2 * h] *= shrink;
          sum[r][n][2 * h + 1] *= shrink;
        }
      }
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          s[r][j][e] = power_of_two(s[r][j][e] - base[e / 2]);
          total[r][e / 2] += s[r][j][e];
        }
    }
    multiply_weights<T, kKeys, D, R>(sum, s, memory.v[stage]);
    __syncthreads();
  }
  wait_loads<0>();
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int64_t first = row0 + own + 16 * r;
    float factor[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float all = total[r][h];
      all += __shfl_xor_sync(0xffffffffu, all, 1);
      all += __shfl_xor_sync(0xffffffffu, all, 2);
      // A token that no segment covers has zeros.
      factor[h] = all > 0 ? 1 / all : 0.0f;
      const int64_t row = first + g + h * 8;
      if (p == 0 && row < plan.tokens)
        static_cast<float*>(lse.data)[row * lse.token + head * lse.head] =
            all > 0 ? top[r][h] * kLn2 + logf(all) : 0.0f;
    }
    store_rows<T, D>(o, head, first, plan.tokens, sum[r], factor[0], factor[1]);
  }
}

template <class T, int D>
void launch(const FlashPlan& plan, Call call) {
  attend<T, D><<<dim3(blocks_for(plan.tokens, kQueries<D>), static_cast<unsigned>(plan.heads)), kFlashThreads,
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
    allow_shared(attend<T, D>, sizeof(Memory<T, D>));
    launch_ = launch<T, D>;
  }

  FlashShape shape_;
  void (*launch_)(const FlashPlan&, Call) = nullptr;
};
GESTALT_KERNEL(FlashAttention);

}  // namespace
}  // namespace gestalt::kernels_cuda
