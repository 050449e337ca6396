#include "gestalt/ops.hpp"
#include "gestalt/plugin.hpp"

namespace gestalt::sgd {

// Stochastic gradient descent, with momentum when it is not 0.
class Sgd : public Optimizer {
 public:
  static constexpr std::string_view name = "gestalt.sgd";
  static constexpr ConfigKey keys[] = {
      {.name = "momentum", .type = "f64", .default_value = "0.0", .min = "0.0", .max = "0.9999999", .doc = "memory of the gradient; 0: none kept"},
      {.name = "nesterov", .type = "bool", .default_value = "false", .doc = "look ahead along the momentum"}};

  Sgd(Host, Attrs c) : options_{c.f64("momentum"), c.boolean("nesterov")} {}

  std::span<const gestalt_optimizer_state> states() const override {
    static constexpr gestalt_optimizer_state kStates[] = {{str_of("momentum"), 0, 0, 0}};
    return std::span(kStates, options_.momentum != 0 ? 1 : 0);
  }
  void emit_step(Recorder&, const OptimizerStep& s) override {
    ops::sgd_update(s.param, s.master, s.grad, s.states.empty() ? Tensor() : s.states[0], s.segments, s.segment_hyper,
                    s.scalars, s.clip, options_);
  }

 private:
  ops::Sgd options_;
};
GESTALT_COMPONENT(Sgd)

}  // namespace gestalt::sgd
