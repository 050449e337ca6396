#include "gestalt/ops.hpp"
#include "gestalt/plugin.hpp"

namespace gestalt::adam {

// AdamW (Loshchilov, Hutter 2019): decoupled weight decay, bias-corrected moments.
class AdamW : public Optimizer {
 public:
  static constexpr std::string_view name = "gestalt.adamw";
  static constexpr ConfigKey keys[] = {
      {.name = "beta1", .type = "f64", .default_value = "0.9", .min = "0.0", .max = "0.9999999", .doc = "memory of the mean"},
      {.name = "beta2", .type = "f64", .default_value = "0.95", .min = "0.0", .max = "0.9999999", .doc = "memory of the mean square"},
      {.name = "eps", .type = "f64", .default_value = "1e-8", .min = "0.0", .doc = "added to the root of the mean square"}};

  AdamW(Host, Attrs c) : options_{c.f64("beta1"), c.f64("beta2"), c.f64("eps")} {}

  std::span<const gestalt_optimizer_state> states() const override {
    static constexpr gestalt_optimizer_state kStates[] = {{str_of("m"), 0, 0, 0}, {str_of("v"), 0, 0, 0}};
    return kStates;
  }
  void emit_step(Recorder&, const OptimizerStep& s) override {
    ops::adamw_update(s.param, s.master, s.grad, s.states[0], s.states[1], s.segments, s.segment_hyper, s.scalars, s.clip,
                      options_);
  }

 private:
  ops::AdamW options_;
};
GESTALT_COMPONENT(AdamW)

}  // namespace gestalt::adam
