// core.matmul and core.linear by cuBLASLt, backend gestalt.cublaslt. A plan holds for its own sizes; the host plans
// again for others.
#include "plugins/kernels_cuda/lt_product.h"

namespace gestalt::kernels_cuda {
namespace {

struct LtKernel {
  static constexpr std::string_view device = "cuda", backend = "gestalt.cublaslt";
  static constexpr uint64_t flags = GESTALT_KERNEL_CAPTURABLE | GESTALT_KERNEL_DETERMINISTIC;
};

// A search may choose another algorithm on another day; a deterministic run takes the library's own choice.
bool may_search(const Plan& plan) { return (plan.require() & GESTALT_REQUIRE_DETERMINISTIC) == 0; }

class LtMatmul : public LtKernel {
 public:
  static constexpr std::string_view op = "core.matmul";
  static constexpr uint64_t flags = LtKernel::flags | GESTALT_KERNEL_ACCUMULATES;

  explicit LtMatmul(Plan plan)
      : shape_(MatmulShape(plan).of(plan.in(0), plan.in(1))),
        product_(shape_, {plan.in(0).dtype(), plan.out(0).dtype(), false}, may_search(plan)) {
    plan.workspace(LtProduct::workspace_bytes(shape_), 256);
  }
  void run(Call call) const {
    product_.run(call.in(0).data<void>(), call.in(1).data<void>(), call.out(0).data<void>(), nullptr,
                 call.accumulate(0), call.workspace(), stream_of(call));
  }

 private:
  ProductShape shape_;
  LtProduct product_;
};
GESTALT_KERNEL(LtMatmul);

class LtLinear : public LtKernel {
 public:
  static constexpr std::string_view op = "core.linear";

  explicit LtLinear(Plan plan)
      : has_bias_(plan.has_in(2)),
        shape_(LinearShape(plan).of(plan.in(0), plan.in(1))),
        product_(shape_, {plan.in(0).dtype(), plan.out(0).dtype(), has_bias_}, may_search(plan)) {
    plan.workspace(LtProduct::workspace_bytes(shape_), 256);
  }
  void run(Call call) const {
    product_.run(call.in(0).data<void>(), call.in(1).data<void>(), call.out(0).data<void>(),
                 has_bias_ ? call.in(2).data<void>() : nullptr, false, call.workspace(), stream_of(call));
  }

 private:
  bool has_bias_;
  ProductShape shape_;
  LtProduct product_;
};
GESTALT_KERNEL(LtLinear);

}  // namespace
}  // namespace gestalt::kernels_cuda
