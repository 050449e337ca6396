// core.attention_bwd on the tensor cores, without atomics: one kernel goes along the keys for each tile of queries
// (dq), one along the queries for each tile of keys (dk, dv, summed over the heads that share them). Both make the
// weights anew from lse. A third makes delta = sum(o do) a query and head.
#include "plugins/kernels_cuda/flash_tiles.cuh"

namespace gestalt::kernels_cuda {
namespace {

struct Backward {
  FlashView q, k, v, o, lse, d_o, dq, dk, dv;
  float* delta;  // [tokens, heads]
};

constexpr int kKeys = 64;     // of a step along the keys
constexpr int kQueries = 32;  // of a step along the queries, where two accumulators leave room for fewer
// Accumulators of 16 rows that a warp has; those of 128 features leave room for one.
template <int D>
constexpr int kTall = D == 64 ? 2 : 1;
template <int D>
constexpr int kRows = 16 * kFlashWarps* kTall<D>;

template <class T, int D>
__global__ void __launch_bounds__(kFlashThreads) sum_products(FlashPlan plan, Backward b) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kFlashWarps + threadIdx.x / 32;
  if (at >= plan.tokens * plan.heads) return;
  const int64_t token = at / plan.heads, head = at % plan.heads;
  const T* o = static_cast<const T*>(b.o.data) + token * b.o.token + head * b.o.head;
  const T* d = static_cast<const T*>(b.d_o.data) + token * b.d_o.token + head * b.d_o.head;
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x) % 32; i < D; i += 32)
    sum += load(o + i * b.o.feature) * load(d + i * b.d_o.feature);
  for (int w = 16; w > 0; w /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, w);
  if (threadIdx.x % 32 == 0) b.delta[at] = sum;
}

template <class T, int D>
struct QueryMemory {
  T q[kRows<D> * (D + kFlashPad)], d_o[kRows<D> * (D + kFlashPad)];
  T k[2][kKeys * (D + kFlashPad)], v[2][kKeys * (D + kFlashPad)];
  BlockRanges<kRows<D>> ranges;
};

template <class T, int D>
__global__ void __launch_bounds__(kFlashThreads) query_gradient(FlashPlan plan, Backward b) {
  extern __shared__ __align__(16) unsigned char raw[];
  constexpr int R = kTall<D>;
  auto& memory = *reinterpret_cast<QueryMemory<T, D>*>(raw);
  const int64_t head = blockIdx.y, key_head = head / (plan.heads / plan.key_heads);
  const int64_t row0 = static_cast<int64_t>(gridDim.x - 1 - blockIdx.x) * kRows<D>;
  find_ranges(plan, row0, true, memory.ranges);
  const Segment any = memory.ranges.any, every = memory.ranges.every;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int g = lane / 4, p = lane % 4, own = warp * 16 * R;
  const float scale = plan.scale * kLog2e;
  float lse[2 * R], delta[2 * R];
#pragma unroll
  for (int h = 0; h < 2 * R; ++h) {
    const int64_t row = row0 + own + g + h * 8;
    const bool there = row < plan.tokens;
    lse[h] = there ? static_cast<const float*>(b.lse.data)[row * b.lse.token + head * b.lse.head] * kLog2e : 0;
    delta[h] = there ? b.delta[row * plan.heads + head] : 0;
  }
  const auto fetch = [&](int64_t from, int stage) {
    load_tile<T, kKeys, D>(memory.k[stage], b.k, key_head, from, any.last);
    load_tile<T, kKeys, D>(memory.v[stage], b.v, key_head, from, any.last);
    commit_loads();
  };
  load_tile<T, kRows<D>, D>(memory.q, b.q, head, row0, plan.tokens);
  load_tile<T, kRows<D>, D>(memory.d_o, b.d_o, head, row0, plan.tokens);
  if (any.first < any.last) fetch(any.first, 0);
  float dq[R][D / 8][4] = {};
  int stage = 0;
  for (int64_t from = any.first; from < any.last; from += kKeys, stage ^= 1) {
    if (from + kKeys < any.last) {
      fetch(from + kKeys, stage ^ 1);
      wait_loads<1>();
    } else {
      wait_loads<0>();
    }
    __syncthreads();
    float s[R][kKeys / 8][4] = {}, dp[R][kKeys / 8][4] = {};
    multiply_turned<T, kKeys, D, R>(s, memory.q + own * (D + kFlashPad), memory.k[stage]);
    multiply_turned<T, kKeys, D, R>(dp, memory.d_o + own * (D + kFlashPad), memory.v[stage]);
    const bool masked = from < every.first || from + kKeys > every.last;
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int row = 16 * r + g + e / 2 * 8, h = 2 * r + e / 2;
          const bool seen = !masked || sees(memory.ranges, from, own + row, j * 8 + 2 * p + e % 2);
          s[r][j][e] = seen ? power_of_two(s[r][j][e] * scale - lse[h]) * (dp[r][j][e] - delta[h]) : 0.0f;
        }
    multiply_weights<T, kKeys, D, R>(dq, s, memory.k[stage]);
    __syncthreads();
  }
  wait_loads<0>();
#pragma unroll
  for (int r = 0; r < R; ++r)
    store_rows<T, D>(b.dq, head, row0 + own + 16 * r, plan.tokens, dq[r], plan.scale, plan.scale);
}

template <class T, int D>
struct KeyMemory {
  T k[kRows<D> * (D + kFlashPad)], v[kRows<D> * (D + kFlashPad)];
  T q[2][kQueries * (D + kFlashPad)], d_o[2][kQueries * (D + kFlashPad)];
  float lse[2][kQueries], delta[2][kQueries];
  BlockRanges<kRows<D>> ranges;
};

template <class T, int D>
__global__ void __launch_bounds__(kFlashThreads) key_gradient(FlashPlan plan, Backward b) {
  extern __shared__ __align__(16) unsigned char raw[];
  constexpr int kStep = kQueries, R = kTall<D>;
  auto& memory = *reinterpret_cast<KeyMemory<T, D>*>(raw);
  const int64_t key_head = blockIdx.y, group = plan.heads / plan.key_heads;
  const int64_t row0 = static_cast<int64_t>(blockIdx.x) * kRows<D>;
  find_ranges(plan, row0, false, memory.ranges);
  const Segment any = memory.ranges.any, every = memory.ranges.every;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int g = lane / 4, p = lane % 4, own = warp * 16 * R;
  const float scale = plan.scale * kLog2e;
  load_tile<T, kRows<D>, D>(memory.k, b.k, key_head, row0, plan.tokens);
  load_tile<T, kRows<D>, D>(memory.v, b.v, key_head, row0, plan.tokens);
  float dk[R][D / 8][4] = {}, dv[R][D / 8][4] = {};
  const auto fetch = [&](int64_t head, int64_t from, int stage) {
    load_tile<T, kStep, D>(memory.q[stage], b.q, head, from, any.last);
    load_tile<T, kStep, D>(memory.d_o[stage], b.d_o, head, from, any.last);
    if (threadIdx.x < kStep) {
      const int64_t row = from + threadIdx.x;
      const bool there = row < any.last;
      memory.lse[stage][threadIdx.x] =
          there ? static_cast<const float*>(b.lse.data)[row * b.lse.token + head * b.lse.head] * kLog2e : 0;
      memory.delta[stage][threadIdx.x] = there ? b.delta[row * plan.heads + head] : 0;
    }
    commit_loads();
  };
  // Steps go over the tiles of queries, and those over the heads of the group.
  const int64_t tiles = any.first < any.last ? (any.last - any.first + kStep - 1) / kStep : 0, steps = tiles * group;
  const auto fetch_step = [&](int64_t i, int stage) {
    fetch(key_head * group + i / tiles, any.first + i % tiles * kStep, stage);
  };
  if (steps > 0) fetch_step(0, 0);
  for (int64_t i = 0; i < steps; ++i) {
    const int stage = static_cast<int>(i % 2);
    const int64_t from = any.first + i % tiles * kStep;
    if (i + 1 < steps) {
      fetch_step(i + 1, stage ^ 1);
      wait_loads<1>();
    } else {
      wait_loads<0>();
    }
    __syncthreads();
    float s[R][kStep / 8][4] = {}, dp[R][kStep / 8][4] = {};
    multiply_turned<T, kStep, D, R>(s, memory.k + own * (D + kFlashPad), memory.q[stage]);
    multiply_turned<T, kStep, D, R>(dp, memory.v + own * (D + kFlashPad), memory.d_o[stage]);
    const bool masked = from < every.first || from + kStep > every.last;
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int j = 0; j < kStep / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int column = j * 8 + 2 * p + e % 2;
          const bool seen = !masked || sees(memory.ranges, from, own + 16 * r + g + e / 2 * 8, column);
          const float weight = seen ? power_of_two(s[r][j][e] * scale - memory.lse[stage][column]) : 0.0f;
          s[r][j][e] = weight;
          dp[r][j][e] = weight * (dp[r][j][e] - memory.delta[stage][column]);
        }
    multiply_weights<T, kStep, D, R>(dv, s, memory.d_o[stage]);
    multiply_weights<T, kStep, D, R>(dk, dp, memory.q[stage]);
    __syncthreads();
  }
  wait_loads<0>();
#pragma unroll
  for (int r = 0; r < R; ++r) {
    store_rows<T, D>(b.dk, key_head, row0 + own + 16 * r, plan.tokens, dk[r], plan.scale, plan.scale);
    store_rows<T, D>(b.dv, key_head, row0 + own + 16 * r, plan.tokens, dv[r], 1, 1);
  }
}

template <class T, int D>
void launch(const FlashPlan& plan, const Backward& b, cudaStream_t stream) {
  const unsigned tiles = blocks_for(plan.tokens, kRows<D>);
  sum_products<T, D><<<blocks_for(plan.tokens * plan.heads, kFlashWarps), kFlashThreads, 0, stream>>>(plan, b);
  key_gradient<T, D>
      <<<dim3(tiles, static_cast<unsigned>(plan.key_heads)), kFlashThreads, sizeof(KeyMemory<T, D>), stream>>>(plan, b);
  query_gradient<T, D>
      <<<dim3(tiles, static_cast<unsigned>(plan.heads)), kFlashThreads, sizeof(QueryMemory<T, D>), stream>>>(plan, b);
}

class FlashAttentionBwd : public CudaKernel {
 public:
  static constexpr std::string_view op = "core.attention_bwd", backend = "gestalt.flash";
  static constexpr uint64_t flags = CudaKernel::strided;

  explicit FlashAttentionBwd(Plan plan) : shape_(plan, 7) {
    const View q = plan.in(0);
    for (uint64_t i : {4, 6}) {
      need_dtype(plan, plan.in(i), i == 4 ? "o" : "do", {q.dtype()});
      need_same_shape(plan, plan.in(i), i == 4 ? "o" : "do", q);
    }
    need_dtype(plan, plan.in(5), "lse", {kF32});
    need_ndim(plan, plan.in(5), "lse", 2);
    for (uint64_t i = 0; i < 3; ++i) need_dtype(plan, plan.out(i), "gradient", {q.dtype()});
    plan.workspace(static_cast<uint64_t>(q.dim(0) * q.dim(1)) * sizeof(float));
    const auto choose = [&](auto type) {
      using T = typename decltype(type)::T;
      if (q.dim(2) == 64)
        use<T, 64>();
      else
        use<T, 128>();
    };
    if (q.is(kBF16))
      choose(Type<__nv_bfloat16>{});
    else
      choose(Type<__half>{});
  }
  void run(Call call) const {
    const FlashPlan plan = shape_.of(call);
    if (plan.tokens == 0) return;
    const Backward b{flash_view(call.in(0)),  flash_view(call.in(1)),
                     flash_view(call.in(2)),  flash_view(call.in(4)),
                     flash_view(call.in(5)),  flash_view(call.in(6)),
                     flash_view(call.out(0)), flash_view(call.out(1)),
                     flash_view(call.out(2)), static_cast<float*>(call.workspace())};
    launch_(plan, b, stream_of(call));
    check_launch(op);
  }

 private:
  template <class T, int D>
  void use() {
    allow_shared(query_gradient<T, D>, sizeof(QueryMemory<T, D>));
    allow_shared(key_gradient<T, D>, sizeof(KeyMemory<T, D>));
    launch_ = launch<T, D>;
  }

  FlashShape shape_;
  void (*launch_)(const FlashPlan&, const Backward&, cudaStream_t) = nullptr;
};
GESTALT_KERNEL(FlashAttentionBwd);

}  // namespace
}  // namespace gestalt::kernels_cuda
