#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gestalt/error.hpp"
#include "support/json.h"

namespace gestalt::format_hf {

// The keys of [model], in the order in which they were set.
class ModelKeys {
 public:
  void set(std::string_view key, int64_t value);
  void set(std::string_view key, double value);
  void set(std::string_view key, bool value);
  void set(std::string_view key, std::string_view value);
  void set(std::string_view key, const char* value) { set(key, std::string_view(value)); }
  void set(std::string_view key, std::span<const int64_t> values);
  void set(std::string_view key, std::span<const double> values);
  // As TOML lines "key = value".
  std::string text() const;
  // The value of an integer key set before; 0 when there is none.
  int64_t integer(std::string_view key) const;

 private:
  void put(std::string_view key, std::string literal);

  std::vector<std::pair<std::string, std::string>> keys_;
};

// rope_theta, rope_kind and the numbers of the kind, out of the old keys (rope_theta, rope_scaling) or the new
// (rope_parameters).
void set_rope(const support::Json& config, ModelKeys& out, double theta = 10000.0);

// attention_windows: layer_types if the file has them, else what `slides` says of each layer.
template <class F>
void set_windows(const support::Json& config, int64_t layers, int64_t window, F slides, ModelKeys& out) {
  if (window <= 0) return;
  std::vector<int64_t> windows;
  const support::Json* types = config.has("layer_types") ? &config.at("layer_types") : nullptr;
  if (types && types->size() != static_cast<uint64_t>(layers))
    throw Error(GESTALT_DATA_ERROR, "[layer_types] has " + std::to_string(types->size()) + " entries, expected " +
                                        std::to_string(layers));
  for (int64_t i = 0; i < layers; ++i) {
    const bool on = types ? types->items().at(static_cast<size_t>(i)).str() == "sliding_attention" : slides(i);
    windows.push_back(on ? window : 0);
  }
  out.set("attention_windows", std::span<const int64_t>(windows));
}

// The decoder's name of an activation; DATA_ERROR for one that it does not have.
std::string_view plain_activation(std::string_view hf);
std::string_view gated_activation(std::string_view hf);

}  // namespace gestalt::format_hf
