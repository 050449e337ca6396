#include "plugins/kernels_cpu/cross_entropy_shape.h"
#include "plugins/kernels_cpu/loops.h"

// What one part of the classes adds to the cross entropy over all of them: the largest logit, the sum of
// exp(logit - largest), the logit of a label that lies in the part (else 0) and the sum of the logits.
namespace gestalt::kernels_cpu {
namespace {

class CrossEntropyPart : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.cross_entropy_part";

  explicit CrossEntropyPart(Plan plan) : slots_(plan.host()), vocab_max_(plan.in(0).dim(1)), range_(class_range(plan)) {
    need_cross_entropy(plan);
    const View logits = plan.in(0);
    plan.workspace(static_cast<uint64_t>(2 * slots_.count() * vocab_max_ * (logits.is(kF64) ? 8 : 4)));
    run_ = for_compute_type(logits.dtype(), &CrossEntropyPart::run_as<float>, &CrossEntropyPart::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View logits = call.in(0), labels = call.in(1), weights = call.in(2);
    const int64_t tokens = logits.dim(0), vocab = logits.dim(1);
    check_labels(op, labels, weights, range_.classes);
    C* scratch = static_cast<C*>(call.workspace());
    const Loops<C>& table = loops<C>();
    auto put = [&](int output, int64_t t, C value) {
      const View to = call.out(static_cast<uint64_t>(output));
      Out<C>(to).one(t * to.stride(0), value);
    };
    slots_(tokens, row_grain(vocab), [&](int64_t slot, int64_t begin, int64_t end) {
      C* own = scratch + 2 * slot * vocab_max_;
      for (int64_t t = begin; t < end; ++t) {
        const C* x = In<C>(logits).run(t * logits.stride(0), logits.stride(1), vocab, own);
        const C top = table.max(x, vocab);
        put(0, t, top);
        put(1, t, table.exp_shift_sum(x, C(1), top, own + vocab_max_, vocab));
        const int64_t label = In<int64_t>(labels).one(t * labels.stride(0)) - range_.first;
        put(2, t, label >= 0 && label < vocab ? x[label] : C(0));
        put(3, t, static_cast<C>(table.sum(x, vocab)));
      }
    });
  }

  Slots slots_;
  int64_t vocab_max_;
  ClassRange range_;
  void (CrossEntropyPart::*run_)(Call) const;
};
GESTALT_KERNEL(CrossEntropyPart);

}  // namespace
}  // namespace gestalt::kernels_cpu
