#pragma once

#include <cmath>

#include "plugins/kernels_cuda/launch.h"

// Attention on the tensor cores, tile by tile with a running softmax: backend gestalt.flash, for bf16 and f16 and heads
// of 64 or 128 features. Scores and sums are in f32; the weights of the softmax are rounded to 16 bits before they meet
// the values, and so are the gradients of the scores.
namespace gestalt::kernels_cuda {

// What the kernels are given: addresses and strides in elements.
struct FlashView {
  void* data;
  int64_t token, head, feature;  // strides
};

struct FlashPlan {
  bool causal;
  int64_t window;
  float scale;
  int64_t tokens, heads, key_heads, num_starts, starts_stride;
  bool wide_starts;  // seq_starts are i64
  const void* starts;
};

class FlashShape {
 public:
  // sinks, bias, keys and seed are inputs from `extra` on.
  FlashShape(const Plan& plan, uint64_t extra) {
    const View q = plan.in(0), k = plan.in(1), v = plan.in(2), starts = plan.in(3);
    need_dtype(plan, q, "q", {kBF16, kF16});
    need_ndim(plan, q, "q", 3);
    for (auto [view, name] : {std::pair{k, "k"}, std::pair{v, "v"}}) {
      need_dtype(plan, view, name, {q.dtype()});
      need_ndim(plan, view, name, 3);
      need_dim(plan, view, name, 0, q.dim(0));
      need_dim(plan, view, name, 1, k.dim(1));
    }
    need_dim(plan, k, "k", 2, q.dim(2));
    need_index(plan, starts, "seq_starts");
    need_ndim(plan, starts, "seq_starts", 1);
    if (k.dim(1) < 1 || q.dim(1) % k.dim(1) != 0)
      throw InvalidArgument(place(plan) + "q: heads cannot be shared out among key heads, got " + describe(q) +
                            " and k " + describe(k));
    if (q.dim(2) != 64 && q.dim(2) != 128)
      throw Unsupported("flash: heads of " + std::to_string(q.dim(2)) + " features, expected 64 or 128");
    if (v.dim(2) != q.dim(2))
      throw Unsupported("flash: value heads of " + std::to_string(v.dim(2)) +
                        " features, expected those of the keys, " + std::to_string(q.dim(2)));
    if (q.dim(0) == 0) throw Unsupported("flash: no tokens");
    if (plan.attrs().f64("softcap", 0) != 0) throw Unsupported("flash: softcap is not served");
    if (plan.attrs().f64("p", 0) != 0) throw Unsupported("flash: dropout is not served");
    if (plan.has_in(extra)) throw Unsupported("flash: sinks are not served");
    if (plan.has_in(extra + 1)) throw Unsupported("flash: a bias is not served");
    causal_ = plan.attrs().boolean("causal", true);
    window_ = plan.attrs().i64("window", 0);
    if (window_ < 0)
      throw InvalidArgument(place(plan) + "window: got " + std::to_string(window_) + ", expected 0 (none) or more");
    const double scale = plan.attrs().f64("scale", 0);
    if (!(scale >= 0))
      throw InvalidArgument(place(plan) + "scale: got " + std::to_string(scale) + ", expected 0 or more");
    scale_ = static_cast<float>(scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(q.dim(2))));
  }

  FlashPlan of(Call call) const {
    const View q = call.in(0), starts = call.in(3);
    return {causal_,           window_,       scale_,           q.dim(0),        q.dim(1),
            call.in(1).dim(1), starts.dim(0), starts.stride(0), starts.is(kI64), starts.data<void>()};
  }

 private:
  bool causal_ = true;
  int64_t window_ = 0;
  float scale_ = 1;
};

inline FlashView flash_view(View x) {
  return {x.data<void>(), x.stride(0), x.stride(1), x.ndim() > 2 ? x.stride(2) : 1};
}

}  // namespace gestalt::kernels_cuda
