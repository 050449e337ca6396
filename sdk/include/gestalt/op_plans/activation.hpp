// The plans of activations: what a kernel of any device checks.
#pragma once

#include <string>

#include "gestalt/plan_checks.hpp"

namespace gestalt {

// Whether gelu is the erf form; the attribute's other value is "tanh".
inline bool wants_erf(const Plan& plan) {
  const std::string_view form = plan.attrs().str("approximate", "tanh");
  if (form != "tanh" && form != "none")
    throw InvalidArgument(place(plan) + "approximate: unknown form, got '" + std::string(form) +
                          "', expected 'tanh' or 'none'");
  return form == "none";
}

}  // namespace gestalt
