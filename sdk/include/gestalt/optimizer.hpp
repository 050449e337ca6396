// Component kind "optimizer/1": declares its state and emits its update in ops.
#pragma once

#include <span>
#include <vector>

#include "gestalt/abi/optimizer.h"
#include "gestalt/component.hpp"
#include "gestalt/tensor.hpp"

namespace gestalt {

// The tensors of one update; see gestalt_optimizer_step.
struct OptimizerStep {
  Tensor param, master, grad;  // master is none when param is its own
  std::vector<Tensor> states;  // in the order of Optimizer::states
  Tensor segments, segment_hyper, scalars, clip;
};

class Optimizer : public detail::ComponentOf<Optimizer> {
 public:
  // GESTALT_GRANULARITY_
  virtual int64_t granularity() const { return GESTALT_GRANULARITY_ELEMENT; }
  // Names must live as long as this.
  virtual std::span<const gestalt_optimizer_state> states() const = 0;
  virtual void emit_step(Recorder& recorder, const OptimizerStep& step) = 0;

  static constexpr std::string_view kKind = "optimizer/1";
  template <class>
  static constexpr const void* table();
};

namespace detail {

inline constexpr gestalt_optimizer_1 optimizer_table = {
    sizeof(gestalt_optimizer_1),
    [](void* self, gestalt_optimizer_info* out) noexcept {
      return with<Optimizer>(self, [&](Optimizer& o) {
        const std::span<const gestalt_optimizer_state> states = o.states();
        *out = {sizeof(gestalt_optimizer_info), o.granularity(), states.data(), states.size()};
      });
    },
    [](void* self, gestalt_build* b, const gestalt_optimizer_step* s) noexcept {
      return with<Optimizer>(self, [&](Optimizer& o) {
        Recorder r(b, held<Optimizer>(self).host);
        const OptimizerStep step = {r.wrap(s->param),    r.wrap(s->master),
                                    r.wrap(s->grad),     r.wrap({s->states, static_cast<size_t>(s->num_states)}),
                                    r.wrap(s->segments), r.wrap(s->segment_hyper),
                                    r.wrap(s->scalars),  r.wrap(s->clip)};
        o.emit_step(r, step);
      });
    }};

}  // namespace detail

template <class>
constexpr const void* Optimizer::table() {
  return &detail::optimizer_table;
}

}  // namespace gestalt
