#include "plugins/kernels_cuda/attention_shape.cuh"

namespace gestalt::kernels_cuda {
namespace {

// The segment of token t is the last one that starts at or before it. Starts are held within the tokens, whatever they
// say, so that no kernel reads beyond them.
__global__ void __launch_bounds__(kThreads)
    seen_kernel(const Side starts, int64_t step, int64_t count, int tokens, bool causal, int64_t window, Seen* seen) {
  const int64_t t = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (t >= tokens) return;
  int64_t low = 0, high = count;  // the first start beyond t lies in [low, high]
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (load_one<int64_t>(starts, middle * step) <= t)
      low = middle + 1;
    else
      high = middle;
  }
  Seen s{static_cast<int32_t>(t), static_cast<int32_t>(t), static_cast<int32_t>(t), 0};
  if (low > 0 && low < count) {
    const int64_t first = min(max(load_one<int64_t>(starts, (low - 1) * step), int64_t{0}), t);
    const int64_t last = min(max(load_one<int64_t>(starts, low * step), t + 1), static_cast<int64_t>(tokens));
    s.first = static_cast<int32_t>(first);
    s.begin = static_cast<int32_t>(window > 0 ? max(first, t - window + 1) : first);
    s.end = static_cast<int32_t>(causal ? t + 1 : window > 0 ? min(last, t + window) : last);
    s.covered = 1;
  }
  seen[t] = s;
}

}  // namespace

void find_segments(const Call& call, std::string_view op, View starts, int tokens, bool causal, int64_t window,
                   Seen* seen) {
  if (tokens == 0) return;
  seen_kernel<<<blocks_for(tokens), kThreads, 0, stream_of(call)>>>(side_of(starts), starts.stride(0), starts.dim(0),
                                                                    tokens, causal, window, seen);
  check_launch(op);
}

AttentionShape::AttentionShape(const Plan& plan, uint64_t extra)
    : causal_(plan.attrs().boolean("causal", true)),
      window_(plan.attrs().i64("window", 0)),
      softcap_(plan.attrs().f64("softcap", 0)),
      p_(plan.attrs().f64("p", 0)),
      use_(plan.attrs().i64("use", 0)),
      head0_(plan.attrs().i64("head0", 0)),
      extra_(extra),
      sinks_(plan.has_in(extra)),
      bias_(plan.has_in(extra + 1)) {
  const View q = plan.in(0), k = plan.in(1), v = plan.in(2), starts = plan.in(3);
  need_float(plan, q, "q");
  need_ndim(plan, q, "q", 3);
  for (auto [view, name] : {std::pair{k, "k"}, std::pair{v, "v"}}) {
    need_like(plan, view, name, q);
    need_ndim(plan, view, name, 3);
    need_dim(plan, view, name, 0, q.dim(0));
    need_dim(plan, view, name, 1, k.dim(1));
  }
  need_dim(plan, k, "k", 2, q.dim(2));
  if (k.dim(1) < 1 || q.dim(1) % k.dim(1) != 0)
    throw InvalidArgument(place(plan) + "q: heads cannot be shared out among key heads, got " + describe(q) +
                          " and k " + describe(k) + ", expected a multiple of " + std::to_string(k.dim(1)));
  if (q.dim(0) >= int64_t{1} << 31) throw Unsupported(place(plan) + "q: 2^31 tokens or more, got " + describe(q));
  need_index(plan, starts, "seq_starts");
  need_ndim(plan, starts, "seq_starts", 1);
  scale_ = plan.attrs().f64("scale", 0);
  if (!(scale_ >= 0))
    throw InvalidArgument(place(plan) + "scale: got " + std::to_string(scale_) + ", expected 0 or more");
  if (window_ < 0)
    throw InvalidArgument(place(plan) + "window: got " + std::to_string(window_) + ", expected 0 (none) or more");
  if (!(softcap_ >= 0))
    throw InvalidArgument(place(plan) + "softcap: got " + std::to_string(softcap_) + ", expected 0 (none) or more");
  if (sinks_) {
    need_like(plan, plan.in(extra), "sinks", q);
    need_ndim(plan, plan.in(extra), "sinks", 1);
    need_dim(plan, plan.in(extra), "sinks", 0, q.dim(1));
  }
  if (bias_) {
    const View bias = plan.in(extra + 1);
    need_like(plan, bias, "bias", q);
    need_ndim(plan, bias, "bias", 2);
    need_dim(plan, bias, "bias", 0, q.dim(1));
    if (bias.dim(1) % 2 == 0)
      throw InvalidArgument(place(plan) + "bias: even number of distances, got " + describe(bias));
  }
  need_dropout(plan);
  if (scale_ == 0) scale_ = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(q.dim(2), 1)));
}

void AttentionShape::need_dropout(const Plan& plan) const {
  if (!(p_ >= 0 && p_ < 1))
    throw InvalidArgument(place(plan) + "p: got " + std::to_string(p_) + ", expected 0 <= p < 1");
  if (head0_ < 0 || head0_ + plan.in(0).dim(1) > 4096)
    throw InvalidArgument(place(plan) + "head0: got " + std::to_string(head0_) + ", expected heads 0 to 4095");
  if (use_ < 0 || use_ >= int64_t{1} << 32)
    throw InvalidArgument(place(plan) + "use: got " + std::to_string(use_) + ", expected 0 to 4294967295");
  if (!drops()) return;
  if (!plan.has_in(extra_ + 2) || !plan.has_in(extra_ + 3))
    throw InvalidArgument(place(plan) + "p: got " + std::to_string(p_) + " without keys and seed");
  const View keys = plan.in(extra_ + 2), seed = plan.in(extra_ + 3);
  need_dtype(plan, keys, "keys", {kI32});
  need_ndim(plan, keys, "keys", 2);
  need_dim(plan, keys, "keys", 0, plan.in(0).dim(0));
  need_dim(plan, keys, "keys", 1, 2);
  need_dtype(plan, seed, "seed", {kI32});
  need_ndim(plan, seed, "seed", 1);
  need_dim(plan, seed, "seed", 0, 4);
}

AttentionArgs AttentionShape::args(const Call& call) const {
  const View q = call.in(0), k = call.in(1), v = call.in(2);
  AttentionArgs a{};
  a.q = heads_of(q);
  a.k = heads_of(k);
  a.v = heads_of(v);
  if (sinks_) {
    a.sinks = side_of(call.in(extra_));
    a.sinks_step = call.in(extra_).stride(0);
  }
  if (bias_) {
    const View bias = call.in(extra_ + 1);
    a.bias = side_of(bias);
    a.bias_head = bias.stride(0);
    a.bias_step = bias.stride(1);
    a.bias_size = bias.dim(1);
  }
  if (drops()) {
    const View keys = call.in(extra_ + 2), seed = call.in(extra_ + 3);
    a.keys = side_of(keys);
    a.keys_token = keys.stride(0);
    a.keys_step = keys.stride(1);
    a.seed = side_of(seed);
    a.seed_step = seed.stride(0);
  }
  a.tokens = static_cast<int>(q.dim(0));
  a.heads = static_cast<int>(q.dim(1));
  a.groups = static_cast<int>(k.dim(1));
  a.d = static_cast<int>(q.dim(2));
  a.e = static_cast<int>(v.dim(2));
  a.scale = scale_;
  a.softcap = softcap_;
  a.has_sinks = sinks_;
  a.has_bias = bias_;
  a.drops = drops();
  a.threshold = philox_threshold(p_);
  a.use = static_cast<uint32_t>(use_);
  a.head0 = static_cast<uint32_t>(head0_);
  a.keep = 1 / (1 - p_);
  return a;
}

}  // namespace gestalt::kernels_cuda
