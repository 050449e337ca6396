// A third party's feed-forward layer, all of it in one file. Shape letters: t tokens, h hidden size, f inner width.
#include <cmath>
#include <map>
#include <string>

#include "gestalt/ops.hpp"
#include "gestalt/plugin.hpp"

namespace {

using gestalt::Build;
using gestalt::Declare;
using gestalt::Tensor;

// Every activation that a model of this layer may name.
const std::map<std::string, Tensor (*)(Tensor), std::less<>>& activations() {
  static const std::map<std::string, Tensor (*)(Tensor), std::less<>> kAll = {
      {"gelu", [](Tensor x) { return gestalt::ops::gelu(x, "tanh"); }},
      {"gelu_erf", [](Tensor x) { return gestalt::ops::gelu(x, "none"); }},
      {"silu", [](Tensor x) { return gestalt::ops::silu(x); }},
      {"relu", [](Tensor x) { return gestalt::ops::relu(x); }},
      {"swiglu", [](Tensor x) { return gestalt::ops::swiglu(x); }}};
  return kAll;
}

class Mlp : public gestalt::Module {
 public:
  static constexpr std::string_view name = "acme.mlp";
  // The names are those that gestalt.block offers to its MLP; the rest of its keys stays away from this layer.
  static constexpr gestalt::ConfigKey keys[] = {
      {.name = "hidden", .type = "i64", .min = "1", .doc = "width of the residual stream", .required = true},
      {.name = "ffn", .type = "i64", .min = "1", .doc = "inner width", .required = true},
      {.name = "activation",
       .type = "str",
       .default_value = "'gelu'",
       .choices = "gelu|gelu_erf|silu|relu|swiglu",
       .doc = "between the matrices"},
      {.name = "mlp_bias", .type = "bool", .default_value = "false", .doc = "biases of both matrices"},
      {.name = "init_std", .type = "f64", .default_value = "0.02", .min = "0.0", .doc = "deviation of initial weights"},
      {.name = "layers", .type = "i64", .default_value = "1", .min = "1", .doc = "depth of the stack"}};

  Mlp(Declare& d, const gestalt::Attrs& config) {
    const auto found = activations().find(config.str("activation"));
    if (found == activations().end())
      throw gestalt::Error(GESTALT_CONFIG_ERROR,
                           "[activation] unknown, got '" + std::string(config.str("activation")) + "'");
    activate_ = found->second;
    const int64_t h = config.i64("hidden"), f = config.i64("ffn");
    const double std_in = config.f64("init_std");
    const double std_out = std_in / std::sqrt(2.0 * static_cast<double>(config.i64("layers")));
    gestalt::LinearOptions in{.bias = config.boolean("mlp_bias"), .init = gestalt::Init::normal(std_in)};
    if (found->first == "swiglu") {
      in.part_names = {"gate", "up"};
      up_ = d.column_linear("gate_up", h, {f, f}, in);
    } else {
      up_ = d.column_linear("up", h, {f}, in);
    }
    down_ = d.row_linear("down", f, h, {.bias = config.boolean("mlp_bias"), .init = gestalt::Init::normal(std_out)});
  }

  Tensor emit(Build& b, Tensor x_th) const {
    const Tensor inner_tf = b.call(up_, x_th);
    return b.call(down_, activate_(inner_tf));
  }

 private:
  Tensor (*activate_)(Tensor) = nullptr;
  gestalt::Linear up_, down_;
};
GESTALT_COMPONENT(Mlp)
GESTALT_PLUGIN("acme.mlp", "1.0.0")

}  // namespace
