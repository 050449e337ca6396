#include <cmath>

#include "plugins/kernels_cpu/cross_entropy_shape.h"
#include "plugins/kernels_cpu/loops.h"
#include "plugins/kernels_cpu/strided.h"

// loss_sum = sum over tokens of weight (lse - logits[label]) with lse = log sum exp(logits). A token of weight 0 adds
// nothing and its label is not read. The gradient is weight dloss (exp(logits - lse) - onehot(label)). Label smoothing
// s takes (1 - s) of the label and s / vocab of every class in place of the label.
namespace gestalt::kernels_cpu {
namespace {

class CrossEntropy : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.cross_entropy";

  explicit CrossEntropy(Plan plan)
      : slots_(plan.host()), vocab_max_(plan.in(0).dim(1)), smoothing_(smoothing_of(plan)) {
    need_cross_entropy(plan);
    const View logits = plan.in(0);
    const int64_t size = logits.is(kF64) ? 8 : 4;
    plan.workspace(static_cast<uint64_t>(logits.dim(0) * 8 + slots_.count() * vocab_max_ * size));
    run_ = for_compute_type(logits.dtype(), &CrossEntropy::run_as<float>, &CrossEntropy::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View logits = call.in(0), labels = call.in(1), weights = call.in(2), lse = call.out(1);
    const int64_t tokens = logits.dim(0), vocab = logits.dim(1);
    check_labels(op, labels, weights, vocab);
    double* losses = static_cast<double*>(call.workspace());
    C* scratch = reinterpret_cast<C*>(losses + tokens);
    const auto logsumexp = loops<C>().logsumexp;
    slots_(tokens, row_grain(vocab), [&](int64_t slot, int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const C* x = In<C>(logits).run(t * logits.stride(0), logits.stride(1), vocab, scratch + slot * vocab_max_);
        const C sum = logsumexp(x, vocab);
        Out<C>(lse).one(t * lse.stride(0), sum);
        const double weight = In<double>(weights).one(t * weights.stride(0));
        losses[t] = 0;
        if (weight == 0) continue;
        const C aim = x[In<int64_t>(labels).one(t * labels.stride(0))];
        losses[t] = weight * static_cast<double>(sum - aim);
        if (smoothing_ != 0)
          losses[t] +=
              weight * smoothing_ * (static_cast<double>(aim) - loops<C>().sum(x, vocab) / static_cast<double>(vocab));
      }
    });
    double total = 0;
    for (int64_t t = 0; t < tokens; ++t) total += losses[t];
    Out<double>(call.out(0)).one(0, total);
  }

  Slots slots_;
  int64_t vocab_max_;
  double smoothing_;
  void (CrossEntropy::*run_)(Call) const;
};
GESTALT_KERNEL(CrossEntropy);

struct Whole {
  static constexpr std::string_view op = "core.cross_entropy_bwd";
};
struct Part {
  static constexpr std::string_view op = "core.cross_entropy_parallel_bwd";
};

// Of all classes, or of a part of them with the lse over all.
template <class Of>
class CrossEntropyBwd : public CpuKernel {
 public:
  static constexpr std::string_view op = Of::op;

  explicit CrossEntropyBwd(Plan plan)
      : slots_(plan.host()), vocab_max_(plan.in(0).dim(1)), range_(class_range(plan)), smoothing_(smoothing_of(plan)) {
    need_cross_entropy(plan);
    const View logits = plan.in(0);
    need_like(plan, plan.in(3), "lse", logits);
    need_ndim(plan, plan.in(3), "lse", 1);
    need_dim(plan, plan.in(3), "lse", 0, logits.dim(0));
    need_like(plan, plan.in(4), "dloss", logits);
    need_ndim(plan, plan.in(4), "dloss", 0);
    need_like(plan, plan.out(0), "dlogits", logits);
    plan.workspace(static_cast<uint64_t>(2 * slots_.count() * vocab_max_ * (logits.is(kF64) ? 8 : 4)));
    run_ = for_compute_type(logits.dtype(), &CrossEntropyBwd::run_as<float>, &CrossEntropyBwd::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View logits = call.in(0), labels = call.in(1), weights = call.in(2), lse = call.in(3), dx = call.out(0);
    const int64_t tokens = logits.dim(0), vocab = logits.dim(1);
    check_labels(op, labels, weights, range_.classes);
    C* scratch = static_cast<C*>(call.workspace());
    const C dloss = In<C>(call.in(4)).one(0);
    const auto softmax_grad = loops<C>().softmax_grad;
    slots_(tokens, row_grain(vocab), [&](int64_t slot, int64_t begin, int64_t end) {
      C* own = scratch + 2 * slot * vocab_max_;
      for (int64_t t = begin; t < end; ++t) {
        const C factor = In<C>(weights).one(t * weights.stride(0)) * dloss;
        const C* x = In<C>(logits).run(t * logits.stride(0), logits.stride(1), vocab, own);
        C* to = Out<C>(dx).run(t * dx.stride(0), dx.stride(1), vocab, own + vocab_max_);
        if (factor == C(0)) {
          std::fill(to, to + vocab, C(0));
        } else {
          softmax_grad(x, In<C>(lse).one(t * lse.stride(0)), factor, to, vocab);
          const int64_t label = In<int64_t>(labels).one(t * labels.stride(0)) - range_.first;
          const bool here = label >= 0 && label < vocab;
          if (here) to[label] -= factor;
          if (smoothing_ != 0) {
            const C spread = factor * static_cast<C>(smoothing_ / static_cast<double>(range_.classes));
            for (int64_t i = 0; i < vocab; ++i) to[i] -= spread;
            if (here) to[label] += factor * static_cast<C>(smoothing_);
          }
        }
        Out<C>(dx).finish(to, t * dx.stride(0), dx.stride(1), vocab);
      }
    });
  }

  Slots slots_;
  int64_t vocab_max_;
  ClassRange range_;
  double smoothing_;
  void (CrossEntropyBwd::*run_)(Call) const;
};
GESTALT_KERNEL(CrossEntropyBwd<Whole>);
GESTALT_KERNEL(CrossEntropyBwd<Part>);

}  // namespace
}  // namespace gestalt::kernels_cpu
