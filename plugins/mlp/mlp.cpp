// The feed-forward layer. Shape letters: t tokens, h hidden size, f ffn size.
#include <cmath>

#include "gestalt/ops.hpp"
#include "gestalt/plugin.hpp"

namespace gestalt::mlp {

class Mlp : public Module {
 public:
  static constexpr std::string_view name = "gestalt.mlp";
  static constexpr ConfigKey keys[] = {
      {.name = "hidden", .type = "i64", .min = "1", .doc = "width", .required = true},
      {.name = "ffn", .type = "i64", .min = "1", .doc = "inner width", .required = true},
      {.name = "activation",
       .type = "str",
       .default_value = "'gelu'",
       .choices = "gelu|gelu_erf|silu|relu|relu2|swiglu|geglu|geglu_erf|reglu",
       .doc = "between the two matrices; one in glu doubles the first"},
      {.name = "mlp_bias", .type = "bool", .default_value = "false", .doc = "biases of both matrices"},
      {.name = "init_std", .type = "f64", .default_value = "0.02", .min = "0.0", .doc = "deviation of initial weights"},
      {.name = "layers", .type = "i64", .default_value = "1", .min = "1", .doc = "depth: `down` starts at init_std / sqrt(2 layers)"}};

  Mlp(Declare& d, const Attrs& c)
      : activation_(c.str("activation")), up_(up(d, c)), down_(d.row_linear("down", c.i64("ffn"), c.i64("hidden"), down(c))) {}

  Tensor emit(Build& b, Tensor x_th) const { return b.call(down_, activate(b.call(up_, x_th))); }

 private:
  static bool gated(std::string_view activation) { return activation.find("glu") != std::string_view::npos; }
  static Linear up(Declare& d, const Attrs& c) {
    LinearOptions o{.bias = c.boolean("mlp_bias"), .init = Init::normal(c.f64("init_std"))};
    const int64_t f = c.i64("ffn");
    if (!gated(c.str("activation"))) return d.column_linear("up", c.i64("hidden"), {f}, o);
    o.part_names = {"gate", "up"};
    return d.column_linear("gate_up", c.i64("hidden"), {f, f}, o);
  }
  // Residual branches start smaller the deeper the stack is (GPT-2).
  static LinearOptions down(const Attrs& c) {
    return {.bias = c.boolean("mlp_bias"),
            .init = Init::normal(c.f64("init_std") / std::sqrt(2.0 * static_cast<double>(c.i64("layers"))))};
  }
  Tensor activate(Tensor x_tf) const {
    if (activation_ == "swiglu") return ops::swiglu(x_tf);
    if (activation_ == "geglu") return ops::geglu(x_tf);
    if (activation_ == "geglu_erf") return ops::geglu(x_tf, "none");
    if (activation_ == "reglu") return ops::reglu(x_tf);
    if (activation_ == "silu") return ops::silu(x_tf);
    if (activation_ == "relu") return ops::relu(x_tf);
    if (activation_ == "relu2") return ops::relu2(x_tf);
    return ops::gelu(x_tf, activation_ == "gelu_erf" ? "none" : "tanh");
  }

  std::string activation_;
  Linear up_, down_;
};
GESTALT_COMPONENT(Mlp)

}  // namespace gestalt::mlp
