// Cross-entropy as the difference of the log of the sum and the label's logit. Shape letters: t tokens, v vocabulary.
#include "gestalt/ops.hpp"
#include "gestalt/plugin.hpp"

namespace {

namespace ops = gestalt::ops;
using gestalt::Build;
using gestalt::Declare;
using gestalt::Tensor;

class CrossEntropy : public gestalt::Module {
 public:
  static constexpr std::string_view name = "acme.cross_entropy";
  CrossEntropy(Declare&, const gestalt::Attrs&) {}

  std::vector<Tensor> emit(Build& b, std::span<const Tensor> in) const {
    const Tensor logits_tv = in[0], weights_t = b.batch("weights");
    const Tensor mask_tv = ops::one_hot(b.batch("labels"), logits_tv.dim(1), logits_tv.dtype());
    const Tensor label_t = ops::sum(ops::mul(logits_tv, mask_tv), {1});
    const Tensor loss_t = ops::sub(ops::logsumexp(logits_tv), label_t);
    b.loss("lm", ops::sum(ops::mul(loss_t, weights_t)), ops::sum(weights_t));
    return {};
  }
};
GESTALT_COMPONENT(CrossEntropy)

}  // namespace
