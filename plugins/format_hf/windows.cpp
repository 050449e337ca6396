// Layers that look back over a window only.
#include <fmt/format.h>

#include <algorithm>

#include "gestalt/error.hpp"
#include "plugins/format_hf/llama_parts.h"

namespace gestalt::format_hf {

namespace {

bool is_sliding(const support::Json& type) {
  if (type.str() == "sliding_attention") return true;
  if (type.str() == "full_attention") return false;
  throw Error(GESTALT_DATA_ERROR,
              fmt::format("[layer_types] got \"{}\", expected full_attention or sliding_attention", type.str()));
}

}  // namespace

void set_windows(const ConfigReader& config, int64_t window, bool (*slides)(int64_t layer, int64_t number),
                 int64_t number, ModelKeys& out) {
  const auto layers = static_cast<size_t>(out.i64("layers"));
  const support::Json* types = config.find("layer_types");
  if (types && types->size() != layers)
    throw Error(GESTALT_DATA_ERROR, fmt::format("[layer_types] has {} entries, expected {}", types->size(), layers));
  std::vector<bool> on;
  for (size_t i = 0; i < layers; ++i)
    on.push_back(types ? is_sliding(types->items()[i]) : slides(static_cast<int64_t>(i), number));
  if (window <= 0 || std::find(on.begin(), on.end(), true) == on.end()) return;
  if (std::find(on.begin(), on.end(), false) == on.end()) {
    out.set("window", window);
    return;
  }
  size_t period = 1;
  for (size_t i = 0; i < layers; ++i)
    if (on[i] != on[i % period]) period = i + 1;
  std::vector<std::string> kinds;
  for (size_t i = 0; i < period; ++i) kinds.push_back(on[i] ? "sliding" : "full");
  out.set("pattern", ModelKeys::Value(kinds));
  out.set("slots.sliding.window", window);
}

int64_t window_of_layers(const ModelKeys& model, std::vector<bool>* on) {
  const auto layers = static_cast<size_t>(model.i64("layers"));
  on->assign(layers, false);
  const ModelKeys::Value* value = model.find("windows");
  if (!value) return 0;
  const auto& windows = std::get<std::vector<int64_t>>(*value);
  for (size_t i = 0; i < layers; ++i) (*on)[i] = windows[i] != 0;
  return *std::max_element(windows.begin(), windows.end());
}

void write_layer_types(const std::vector<bool>& sliding, support::Json& out) {
  support::Json types = support::Json::array();
  for (const bool s : sliding) types.push(s ? "sliding_attention" : "full_attention");
  out.set("layer_types", std::move(types));
}

}  // namespace gestalt::format_hf
