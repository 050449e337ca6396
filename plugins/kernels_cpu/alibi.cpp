#include <cmath>

#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"

namespace gestalt::kernels_cpu {
namespace {

// bias[head, reach + key - query] = -slope |key - query| (Press and others, "Train short, test long", 2022). The slopes
// of a power of two of heads are 2^(-8 i / heads), i from 1; other numbers take those of the power below, then every
// second one of the power above.
class Alibi : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.alibi";

  explicit Alibi(Plan plan) {
    need_float(plan, plan.out(0), "bias");
    need_ndim(plan, plan.out(0), "bias", 2);
  }
  void run(Call call) const {
    const View bias = call.out(0);
    const int64_t heads = bias.dim(0), reach = bias.dim(1) / 2;
    int64_t power = 1;
    while (2 * power <= heads) power *= 2;
    for (int64_t head = 0; head < heads; ++head) {
      const double exponent = head < power
                                  ? 8.0 * static_cast<double>(head + 1) / static_cast<double>(power)
                                  : 4.0 * static_cast<double>(2 * (head - power) + 1) / static_cast<double>(power);
      const double slope = std::exp2(-exponent);
      for (int64_t i = 0; i < bias.dim(1); ++i)
        Out<double>(bias).one(head * bias.stride(0) + i * bias.stride(1),
                              -slope * static_cast<double>(std::abs(i - reach)));
    }
  }
};
GESTALT_KERNEL(Alibi);

}  // namespace
}  // namespace gestalt::kernels_cpu
