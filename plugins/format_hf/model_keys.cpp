#include "plugins/format_hf/model_keys.h"

#include <fmt/format.h>

#include "gestalt/error.hpp"

namespace gestalt::format_hf {

namespace {

// A TOML float: digits that keep the value, and a point or exponent so that it stays a float.
std::string literal(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

struct Activation {
  std::string_view hf, plain, gated;
};
constexpr Activation kActivations[] = {{"gelu", "gelu_erf", "geglu_erf"},
                                       {"gelu_new", "gelu", "geglu"},
                                       {"gelu_pytorch_tanh", "gelu", "geglu"},
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

void ModelKeys::put(std::string_view key, std::string literal) {
  for (auto& [k, v] : keys_)
    if (k == key) {
      v = std::move(literal);
      return;
    }
  keys_.emplace_back(key, std::move(literal));
}

void ModelKeys::set(std::string_view key, int64_t value) { put(key, fmt::format("{}", value)); }
void ModelKeys::set(std::string_view key, double value) { put(key, literal(value)); }
void ModelKeys::set(std::string_view key, bool value) { put(key, value ? "true" : "false"); }
void ModelKeys::set(std::string_view key, std::string_view value) { put(key, fmt::format("\"{}\"", value)); }
void ModelKeys::set(std::string_view key, std::span<const int64_t> values) {
  put(key, fmt::format("[{}]", fmt::join(values.begin(), values.end(), ", ")));
}
void ModelKeys::set(std::string_view key, std::span<const double> values) {
  std::vector<std::string> literals;
  for (double v : values) literals.push_back(literal(v));
  put(key, fmt::format("[{}]", fmt::join(literals, ", ")));
}

std::string ModelKeys::text() const {
  std::string out;
  for (const auto& [key, value] : keys_) out += key + " = " + value + "\n";
  return out;
}

int64_t ModelKeys::integer(std::string_view key) const {
  for (const auto& [k, v] : keys_)
    if (k == key) return std::stoll(v);
  return 0;
}

std::string_view plain_activation(std::string_view hf) { return activation(hf, &Activation::plain); }
std::string_view gated_activation(std::string_view hf) { return activation(hf, &Activation::gated); }

}  // namespace gestalt::format_hf
