#include "plugins/kernels_cuda/attention_tile.cuh"

// With p = exp(scores - lse), recomputed tile by tile, and delta = rowsum(o do):
//   dv = p^T do,  ds = p (do v^T - delta) times the slope of the score,  dq = ds k,  dk = ds^T q,
// where dropout acts on the p of dv and on do v^T. One kernel walks over keys for dq, another over queries (of all
// heads that share a key head, in order) for dk and dv, so nothing is added by two blocks. dbias sums ds before the
// slope over the pairs of one distance, dsinks sums -exp(sink - lse) delta over the tokens.
namespace gestalt::kernels_cuda {
namespace {

template <class C>
__global__ void __launch_bounds__(kThreads) attention_delta(const __grid_constant__ AttentionArgs a, C* delta) {
  const int64_t item = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (item >= static_cast<int64_t>(a.tokens) * a.heads) return;
  const int64_t t = item / a.heads, head = item % a.heads;
  C sum = C(0);
  for (int i = static_cast<int>(threadIdx.x) % 32; i < a.e; i += 32)
    sum += load_one<C>(a.o.side, t * a.o.token + head * a.o.head + i * a.o.step) *
           load_one<C>(a.grad.side, t * a.grad.token + head * a.grad.head + i * a.grad.step);
  sum = group_sum<32>(sum);
  if (threadIdx.x % 32 == 0) delta[item] = sum;
}

// Turns products of a tile, p of q k and dp of do v, into the weights after dropout and ds. Row i is query first_query
// + i, column j key first_key + j.
template <class C>
__device__ __forceinline__ void weigh(const AttentionArgs& a, const C* delta, int head, int first_query, int first_key,
                                      C* p, C* dp) {
  constexpr int kTile = Tile<C>::kSize, kLanes = kTileThreads / kTile;
  const int own = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
  const int query = first_query + own;
  const Seen seen = query < a.tokens ? a.seen[query] : Seen{0, 0, 0, 0};
  const Drop drop = a.drops && seen.covered ? drop_of(a, head, query, seen.first) : Drop{};
  C lse = C(0), row_delta = C(0);
  if (seen.covered) {
    lse = load_one<C>(a.lse.side, query * a.lse.token + head * a.lse.head);
    row_delta = delta[static_cast<int64_t>(query) * a.heads + head];
  }
  for (int j = lane; j < kTile; j += kLanes) {
    const int at = own * (kTile + 1) + j, key = first_key + j;
    C weight = C(0), ds = C(0);
    if (key >= seen.begin && key < seen.end) {
      C slope;
      weight = exp(score_of(a, head, query, key, p[at], &slope) - lse);
      const C keep = a.drops ? kept<C>(a, drop, key) : C(1);
      ds = weight * (dp[at] * keep - row_delta) * slope;
      weight *= keep;
    }
    p[at] = weight;
    dp[at] = ds;
  }
}

template <class C>
__global__ void __launch_bounds__(kTileThreads) attention_dq(const __grid_constant__ AttentionArgs a, const C* delta) {
  constexpr int kTile = Tile<C>::kSize;
  extern __shared__ double shared[];
  C* q = reinterpret_cast<C*>(shared);
  C* k = q + kTile * (a.d + 1);
  C* dq = k + kTile * (a.d + 1);
  C* grad = dq + kTile * (a.d + 1);
  C* v = grad + kTile * (a.e + 1);
  C* p = v + kTile * (a.e + 1);
  C* ds = p + kTile * (kTile + 1);
  const int head = static_cast<int>(blockIdx.y), group = head / (a.heads / a.groups);
  const int first = static_cast<int>(blockIdx.x) * kTile;
  const int own = first + static_cast<int>(threadIdx.x) % kTile;
  const auto [begin, end] = span_of(own < a.tokens ? a.seen[own] : Seen{0, 0, 0, 0});
  load_tile<C>(a.q, first, a.tokens, head, a.d, q);
  load_tile<C>(a.grad, first, a.tokens, head, a.e, grad);
  for (int i = static_cast<int>(threadIdx.x); i < kTile * (a.d + 1); i += kTileThreads) dq[i] = C(0);
  for (int key = begin; key < end; key += kTile) {
    __syncthreads();
    load_tile<C>(a.k, key, a.tokens, group, a.d, k);
    load_tile<C>(a.v, key, a.tokens, group, a.e, v);
    __syncthreads();
    products<C>(q, k, a.d, p);
    products<C>(grad, v, a.e, ds);
    __syncthreads();
    weigh<C>(a, delta, head, first, key, p, ds);
    __syncthreads();
    add_weighted<C>(ds, k, a.d, dq);
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kTile * a.d; i += kTileThreads) {
    const int row = i / a.d, column = i % a.d;
    if (first + row < a.tokens)
      store_one<C>(a.dq.side, (first + row) * a.dq.token + head * a.dq.head + column * a.dq.step,
                   dq[row * (a.d + 1) + column]);
  }
}

// queries: of each key the queries [begin, end) that may see it.
template <class C>
__global__ void __launch_bounds__(kTileThreads)
    attention_dkv(const __grid_constant__ AttentionArgs a, const C* delta, const Seen* queries) {
  constexpr int kTile = Tile<C>::kSize;
  extern __shared__ double shared[];
  C* k = reinterpret_cast<C*>(shared);
  C* dk = k + kTile * (a.d + 1);
  C* q = dk + kTile * (a.d + 1);
  C* v = q + kTile * (a.d + 1);
  C* dv = v + kTile * (a.e + 1);
  C* grad = dv + kTile * (a.e + 1);
  C* p = grad + kTile * (a.e + 1);
  C* ds = p + kTile * (kTile + 1);
  const int group = static_cast<int>(blockIdx.y), shared_by = a.heads / a.groups;
  const int first = static_cast<int>(blockIdx.x) * kTile;
  const int own = first + static_cast<int>(threadIdx.x) % kTile;
  const auto [begin, end] = span_of(own < a.tokens ? queries[own] : Seen{0, 0, 0, 0});
  load_tile<C>(a.k, first, a.tokens, group, a.d, k);
  load_tile<C>(a.v, first, a.tokens, group, a.e, v);
  for (int i = static_cast<int>(threadIdx.x); i < kTile * (a.d + 1); i += kTileThreads) dk[i] = C(0);
  for (int i = static_cast<int>(threadIdx.x); i < kTile * (a.e + 1); i += kTileThreads) dv[i] = C(0);
  for (int head = group * shared_by; head < (group + 1) * shared_by; ++head) {
    for (int query = begin; query < end; query += kTile) {
      __syncthreads();
      load_tile<C>(a.q, query, a.tokens, head, a.d, q);
      load_tile<C>(a.grad, query, a.tokens, head, a.e, grad);
      __syncthreads();
      products<C>(q, k, a.d, p);
      products<C>(grad, v, a.e, ds);
      __syncthreads();
      weigh<C>(a, delta, head, query, first, p, ds);
      __syncthreads();
      add_weighted<C, true>(p, grad, a.e, dv);
      add_weighted<C, true>(ds, q, a.d, dk);
    }
  }
  __syncthreads();
  const auto store = [&](const Heads& to, const C* from, int size) {
    for (int i = static_cast<int>(threadIdx.x); i < kTile * size; i += kTileThreads) {
      const int row = i / size, column = i % size;
      if (first + row < a.tokens)
        store_one<C>(to.side, (first + row) * to.token + group * to.head + column * to.step,
                     from[row * (size + 1) + column]);
    }
  };
  store(a.dk, dk, a.d);
  store(a.dv, dv, a.e);
}

// The queries that see a key: of its segment, from itself on where causal, within the window.
__global__ void __launch_bounds__(kThreads)
    queries_kernel(const Seen* seen, const Seen* whole, int tokens, bool causal, int window, Seen* queries) {
  const int t = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (t >= tokens) return;
  Seen s = seen[t];
  const int last = whole[t].end;
  s.begin = causal ? t : window > 0 ? max(s.first, t - window + 1) : s.first;
  s.end = s.covered ? (window > 0 ? min(last, t + window) : last) : s.begin;
  queries[t] = s;
}

template <class C>
__global__ void __launch_bounds__(kThreads) attention_dsinks(const __grid_constant__ AttentionArgs a, const C* delta,
                                                             const Side dsinks, int64_t step, bool accumulate) {
  const int head = static_cast<int>(blockIdx.x);
  const double sink = load_one<double>(a.sinks, head * a.sinks_step);
  double sum = 0;
  for (int t = static_cast<int>(threadIdx.x); t < a.tokens; t += kThreads)
    if (a.seen[t].covered)
      sum -= exp(sink - load_one<double>(a.lse.side, t * a.lse.token + head * a.lse.head)) *
             static_cast<double>(delta[static_cast<int64_t>(t) * a.heads + head]);
  sum = group_sum<kThreads>(sum);
  if (threadIdx.x == 0) store_one<C>(dsinks, head * step, static_cast<C>(sum), accumulate);
}

// A block does a distance of a head, each warp one pair at a time.
template <class C>
__global__ void __launch_bounds__(kThreads)
    attention_dbias(const __grid_constant__ AttentionArgs a, const C* delta, const Side dbias, int64_t head_step,
                    int64_t step, bool accumulate) {
  const int head = static_cast<int>(blockIdx.y), group = head / (a.heads / a.groups);
  const int away = static_cast<int>(blockIdx.x) - static_cast<int>(a.bias_size / 2);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  double sum = 0;
  for (int t = static_cast<int>(threadIdx.x) / 32; t < a.tokens; t += kThreads / 32) {
    const Seen seen = a.seen[t];
    const int key = t + away;
    if (key < seen.begin || key >= seen.end) continue;
    C product = C(0), dp = C(0);
    for (int i = lane; i < a.d; i += 32)
      product += load_one<C>(a.q.side, t * a.q.token + head * a.q.head + i * a.q.step) *
                 load_one<C>(a.k.side, key * a.k.token + group * a.k.head + i * a.k.step);
    for (int i = lane; i < a.e; i += 32)
      dp += load_one<C>(a.grad.side, t * a.grad.token + head * a.grad.head + i * a.grad.step) *
            load_one<C>(a.v.side, key * a.v.token + group * a.v.head + i * a.v.step);
    product = group_sum<32>(product);
    dp = group_sum<32>(dp);
    C slope;
    const C weight =
        exp(score_of(a, head, t, key, product, &slope) - load_one<C>(a.lse.side, t * a.lse.token + head * a.lse.head));
    const C keep = a.drops ? kept<C>(a, drop_of(a, head, t, seen.first), key) : C(1);
    if (lane == 0) sum += static_cast<double>(weight * (dp * keep - delta[static_cast<int64_t>(t) * a.heads + head]));
  }
  sum = group_sum<kThreads>(sum);
  if (threadIdx.x == 0) store_one<C>(dbias, head * head_step + blockIdx.x * step, static_cast<C>(sum), accumulate);
}

class AttentionBwd : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.attention_bwd";
  static constexpr uint64_t flags = ElementKernel::accumulating;

  explicit AttentionBwd(Plan plan) : shape_(plan, 7) {
    const View q = plan.in(0), v = plan.in(2), o = plan.in(4), lse = plan.in(5), grad = plan.in(6);
    for (auto [view, name] : {std::pair{o, "o"}, std::pair{grad, "do"}}) {
      need_like(plan, view, name, q);
      need_ndim(plan, view, name, 3);
      need_dim(plan, view, name, 0, q.dim(0));
      need_dim(plan, view, name, 1, q.dim(1));
      need_dim(plan, view, name, 2, v.dim(2));
    }
    need_like(plan, lse, "lse", q);
    need_ndim(plan, lse, "lse", 2);
    need_dim(plan, lse, "lse", 0, q.dim(0));
    need_dim(plan, lse, "lse", 1, q.dim(1));
    plan.workspace(3 * AttentionShape::seen_bytes(q.dim(0)) +
                   static_cast<uint64_t>(q.dim(0) * q.dim(1)) * (q.is(kF64) ? 8 : 4));
    run_ = for_compute_type(q.dtype(), &AttentionBwd::run_as<float>, &AttentionBwd::run_as<double>);
    if (q.is(kF64))
      prepare<double>(plan, q.dim(2), v.dim(2));
    else
      prepare<float>(plan, q.dim(2), v.dim(2));
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  // Tiles of d_rows and e_rows rows, and two of weights.
  template <class C>
  static size_t shared_bytes(int64_t d, int64_t e, int64_t d_tiles, int64_t e_tiles) {
    constexpr int64_t kTile = Tile<C>::kSize;
    return static_cast<size_t>(kTile * (d_tiles * (d + 1) + e_tiles * (e + 1) + 2 * (kTile + 1))) * sizeof(C);
  }
  template <class C>
  static void prepare(const Plan& plan, int64_t d, int64_t e) {
    prepare_tiles<C>(plan, &attention_dq<C>, shared_bytes<C>(d, e, 3, 2), d, e);
    prepare_tiles<C>(plan, &attention_dkv<C>, shared_bytes<C>(d, e, 3, 3), d, e);
  }

  template <class C>
  void run_as(Call call) const {
    AttentionArgs a = shape_.args(call);
    cudaStream_t stream = stream_of(call);
    a.o = heads_of(call.in(4));
    a.lse = heads_of(call.in(5));
    a.grad = heads_of(call.in(6));
    a.dq = heads_of(call.out(0));
    a.dk = heads_of(call.out(1));
    a.dv = heads_of(call.out(2));
    const int tokens = a.tokens;
    Seen* seen = static_cast<Seen*>(call.workspace());
    Seen* whole = seen + tokens;
    Seen* queries = whole + tokens;
    C* delta = reinterpret_cast<C*>(queries + tokens);
    a.seen = seen;
    find_segments(call, op, call.in(3), tokens, shape_.causal(), shape_.window(), seen);
    find_segments(call, op, call.in(3), tokens, false, 0, whole);
    if (tokens > 0 && a.heads > 0) {
      const int window = static_cast<int>(std::min<int64_t>(shape_.window(), int64_t{1} << 30));
      queries_kernel<<<blocks_for(tokens), kThreads, 0, stream>>>(seen, whole, tokens, shape_.causal(), window,
                                                                  queries);
      attention_delta<C><<<blocks_for(int64_t{tokens} * a.heads, kThreads / 32), kThreads, 0, stream>>>(a, delta);
      const unsigned tiles = blocks_for(tokens, Tile<C>::kSize);
      attention_dq<C>
          <<<dim3(tiles, static_cast<unsigned>(a.heads)), kTileThreads, shared_bytes<C>(a.d, a.e, 3, 2), stream>>>(
              a, delta);
      attention_dkv<C>
          <<<dim3(tiles, static_cast<unsigned>(a.groups)), kTileThreads, shared_bytes<C>(a.d, a.e, 3, 3), stream>>>(
              a, delta, queries);
    }
    if (a.heads > 0 && shape_.has_sinks())
      attention_dsinks<C><<<static_cast<unsigned>(a.heads), kThreads, 0, stream>>>(
          a, delta, side_of(call.out(3)), call.out(3).stride(0), call.accumulate(3));
    if (a.heads > 0 && shape_.has_bias())
      attention_dbias<C>
          <<<dim3(static_cast<unsigned>(a.bias_size), static_cast<unsigned>(a.heads)), kThreads, 0, stream>>>(
              a, delta, side_of(call.out(4)), call.out(4).stride(0), call.out(4).stride(1), call.accumulate(4));
    check_launch(op);
  }

  AttentionShape shape_;
  void (AttentionBwd::*run_)(Call) const;
};
GESTALT_KERNEL(AttentionBwd);

}  // namespace
}  // namespace gestalt::kernels_cuda
