#include <cmath>

#include "gestalt/plugin.hpp"

class Gelu {
 public:
  static constexpr std::string_view op = "core.gelu", device = "cpu", backend = "acme.cpu";
  static constexpr uint64_t flags = GESTALT_KERNEL_DETERMINISTIC;

  explicit Gelu(gestalt::Plan plan) : parallel_(plan.host()) {  // once, before the first step
    if (!plan.in(0).is(gestalt::kF32) || plan.attrs().str("approximate") != "tanh")
      throw gestalt::Unsupported("[core.gelu] f32 and the tanh form only");
  }
  void run(gestalt::Call call) const {  // every step; allocates nothing
    const float* x = call.in(0).data<const float>();
    float* y = call.out(0).data<float>();
    parallel_(call.in(0).numel(), 4096, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        y[i] = 0.5f * x[i] * (1.0f + std::tanh(0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
    });
  }

 private:
  gestalt::Parallel parallel_;
};
GESTALT_KERNEL(Gelu)
GESTALT_PLUGIN("acme.gelu", "1.0.0")
