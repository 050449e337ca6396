// Four inputs, one output, one float of each: what a call across the border costs when the kernel costs nothing.
#include "gestalt/plugin.hpp"

namespace gestalt::bench_null {

struct Null {
  static constexpr std::string_view schema = "gestalt.bench_null(a, b, c, d) -> (y)";
  static constexpr uint64_t flags = GESTALT_OP_PURE;
  static void infer(InferPlan& plan) {
    for (uint64_t i = 1; i < 4; ++i) plan.expect_same(i, 0);
    plan.out(0, plan.in(0));
  }
};
GESTALT_OP(Null)

class NullOnCpu {
 public:
  static constexpr std::string_view op = "gestalt.bench_null", device = "cpu", backend = "gestalt.cpu";
  static constexpr uint64_t flags = GESTALT_KERNEL_DETERMINISTIC | GESTALT_KERNEL_ANY_SHAPE;
  explicit NullOnCpu(Plan plan) {
    if (!plan.in(0).is(kF32)) throw Unsupported("[gestalt.bench_null] got " + describe(plan.in(0)) + ", expected f32");
  }
  void run(Call call) const {
    *call.out(0).data<float>() = *call.in(0).data<const float>() + *call.in(1).data<const float>() +
                                 *call.in(2).data<const float>() + *call.in(3).data<const float>();
  }
};
GESTALT_KERNEL(NullOnCpu)

}  // namespace gestalt::bench_null
