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

AttentionShape::AttentionShape(const Plan& plan, uint64_t extra) : p_(plan, extra) {
  const View q = plan.in(0);
  if (q.dim(0) >= int64_t{1} << 31) throw Unsupported(place(plan) + "q: 2^31 tokens or more, got " + describe(q));
}

AttentionArgs AttentionShape::args(const Call& call) const {
  const View q = call.in(0), k = call.in(1), v = call.in(2);
  AttentionArgs a{};
  a.q = heads_of(q);
  a.k = heads_of(k);
  a.v = heads_of(v);
  if (has_sinks()) {
    a.sinks = side_of(call.in(p_.sinks));
    a.sinks_step = call.in(p_.sinks).stride(0);
  }
  if (has_bias()) {
    const View bias = call.in(p_.bias);
    a.bias = side_of(bias);
    a.bias_head = bias.stride(0);
    a.bias_step = bias.stride(1);
    a.bias_size = bias.dim(1);
  }
  if (drops()) {
    const View keys = call.in(p_.keys), seed = call.in(p_.keys + 1);
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
  a.scale = p_.scale;
  a.softcap = p_.softcap;
  a.has_sinks = has_sinks();
  a.has_bias = has_bias();
  a.drops = drops();
  a.threshold = philox_threshold(p_.p);
  a.use = static_cast<uint32_t>(p_.use);
  a.head0 = static_cast<uint32_t>(p_.head0);
  a.keep = 1 / (1 - p_.p);
  return a;
}

}  // namespace gestalt::kernels_cuda
