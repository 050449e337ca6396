#include "plugins/kernels_cuda/attention_tile.cuh"

// The plain attention: o = softmax(scores) v, lse = log sum exp of the scores and of the sink. Tiles of queries go over
// tiles of keys with a running maximum m and sum l per query: when m grows, what has been summed shrinks by
// exp(old m - m). Sums and weights in f32 (f64), on the ordinary units: it serves every shape and feature, and the
// faster kernels are checked against it.
namespace gestalt::kernels_cuda {
namespace {

template <class C>
__global__ void __launch_bounds__(kTileThreads) attention(const __grid_constant__ AttentionArgs a) {
  constexpr int kTile = Tile<C>::kSize, kLanes = kTileThreads / kTile;  // kLanes threads share a query
  extern __shared__ double shared[];
  C* q = reinterpret_cast<C*>(shared);
  C* k = q + kTile * (a.d + 1);
  C* v = k + kTile * (a.d + 1);
  C* o = v + kTile * (a.e + 1);
  C* p = o + kTile * (a.e + 1);
  const int head = static_cast<int>(blockIdx.y), group = head / (a.heads / a.groups);
  const int first = static_cast<int>(blockIdx.x) * kTile;
  const int own = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
  const int query = first + own;
  const Seen seen = query < a.tokens ? a.seen[query] : Seen{0, 0, 0, 0};
  const Drop drop = a.drops && seen.covered ? drop_of(a, head, query, seen.first) : Drop{};
  const auto [begin, end] = span_of(seen);

  load_tile<C>(a.q, first, a.tokens, head, a.d, q);
  for (int i = static_cast<int>(threadIdx.x); i < kTile * (a.e + 1); i += kTileThreads) o[i] = C(0);
  C m = a.has_sinks ? load_one<C>(a.sinks, head * a.sinks_step) : -infinity<C>();
  C l = C(a.has_sinks ? 1 : 0);
  for (int key = begin; key < end; key += kTile) {
    __syncthreads();
    load_tile<C>(a.k, key, a.tokens, group, a.d, k);
    load_tile<C>(a.v, key, a.tokens, group, a.e, v);
    __syncthreads();
    products<C>(q, k, a.d, p);
    __syncthreads();
    C* row = p + own * (kTile + 1);
    C top = m;
    for (int j = lane; j < kTile; j += kLanes) {
      C slope;
      const bool sees = key + j >= seen.begin && key + j < seen.end;
      const C score = sees ? score_of(a, head, query, key + j, row[j], &slope) : -infinity<C>();
      row[j] = score;
      top = score > top || score != score ? score : top;
    }
    for (int offset = kLanes / 2; offset > 0; offset /= 2) {
      const C other = __shfl_xor_sync(0xffffffffu, top, offset);
      top = other > top || other != other ? other : top;
    }
    const C shrink = m == top ? C(1) : exp(m - top);
    C sum = C(0);
    for (int j = lane; j < kTile; j += kLanes) {
      const C weight = row[j] == -infinity<C>() ? C(0) : exp(row[j] - top);
      sum += weight;
      row[j] = a.drops && weight != C(0) ? weight * kept<C>(a, drop, key + j) : weight;
    }
    for (int offset = kLanes / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    l = l * shrink + sum;
    m = top;
    if (shrink != C(1))
      for (int i = lane; i < a.e; i += kLanes) o[own * (a.e + 1) + i] *= shrink;
    __syncthreads();
    add_weighted<C>(p, v, a.e, o);
  }
  __syncthreads();
  if (query >= a.tokens) return;
  const C factor = seen.covered ? C(1) / l : C(0);
  for (int i = lane; i < a.e; i += kLanes)
    store_one<C>(a.o.side, query * a.o.token + head * a.o.head + i * a.o.step,
                 seen.covered ? o[own * (a.e + 1) + i] * factor : C(0));
  if (lane == 0) store_one<C>(a.lse.side, query * a.lse.token + head * a.lse.head, seen.covered ? m + log(l) : C(0));
}

class Attention : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.attention";

  explicit Attention(Plan plan) : shape_(plan, 4) {
    const View q = plan.in(0), v = plan.in(2);
    plan.workspace(AttentionShape::seen_bytes(q.dim(0)));
    if (q.is(kF64)) {
      run_ = &Attention::run_as<double>;
      prepare_tiles<double>(plan, &attention<double>, shared_bytes<double>(q.dim(2), v.dim(2)), q.dim(2), v.dim(2));
    } else {
      run_ = &Attention::run_as<float>;
      prepare_tiles<float>(plan, &attention<float>, shared_bytes<float>(q.dim(2), v.dim(2)), q.dim(2), v.dim(2));
    }
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  static size_t shared_bytes(int64_t d, int64_t e) {
    constexpr int64_t kTile = Tile<C>::kSize;
    return static_cast<size_t>(kTile * (2 * (d + 1) + 2 * (e + 1) + kTile + 1)) * sizeof(C);
  }

  template <class C>
  void run_as(Call call) const {
    AttentionArgs a = shape_.args(call);
    if (a.tokens == 0 || a.heads == 0) return;
    a.o = heads_of(call.out(0));
    a.lse = heads_of(call.out(1));
    a.seen = static_cast<const Seen*>(call.workspace());
    find_segments(call, op, call.in(3), a.tokens, shape_.causal(), shape_.window(),
                  static_cast<Seen*>(call.workspace()));
    const dim3 grid(blocks_for(a.tokens, Tile<C>::kSize), static_cast<unsigned>(a.heads));
    attention<C><<<grid, kTileThreads, shared_bytes<C>(a.d, a.e), stream_of(call)>>>(a);
    check_launch(op);
  }

  AttentionShape shape_;
  void (Attention::*run_)(Call) const;
};
GESTALT_KERNEL(Attention);

}  // namespace
}  // namespace gestalt::kernels_cuda
