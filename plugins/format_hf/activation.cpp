#include <fmt/format.h>

#include "gestalt/error.hpp"
#include "plugins/format_hf/llama_parts.h"

namespace gestalt::format_hf {

namespace {

struct Activation {
  std::string_view hf, plain, gated;
};
// The first of several names is the one that is written.
constexpr Activation kActivations[] = {{"gelu", "gelu_erf", "geglu_erf"},
                                       {"gelu_pytorch_tanh", "gelu", "geglu"},
                                       {"gelu_new", "gelu", "geglu"},
                                       {"silu", "silu", "swiglu"},
                                       {"swish", "silu", "swiglu"},
                                       {"relu", "relu", "reglu"},
                                       {"relu2", "relu2", ""}};

std::string_view activation(std::string_view hf, std::string_view Activation::*form) {
  for (const Activation& a : kActivations)
    if (a.hf == hf && !(a.*form).empty()) return a.*form;
  throw Error(GESTALT_DATA_ERROR, fmt::format("[hidden_act] got \"{}\", which the decoder does not have", hf));
}

}  // namespace

std::string_view plain_activation(std::string_view hf) { return activation(hf, &Activation::plain); }
std::string_view gated_activation(std::string_view hf) { return activation(hf, &Activation::gated); }

std::string_view hf_activation(std::string_view name) {
  for (const Activation& a : kActivations)
    if (a.plain == name || a.gated == name) return a.hf;
  return name;
}

}  // namespace gestalt::format_hf
