// When two [model] sections are the same model.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "gestalt/error.hpp"
#include "plugins/format_hf/model_keys.h"

namespace gestalt::format_hf {

namespace {

struct Neutral {
  std::string_view key;
  ModelKeys::Value value;
};

// What the decoder takes a key for that the section does not have.
const std::vector<Neutral>& neutral() {
  using Text = std::string;
  static const std::vector<Neutral> kNeutral = {{"kv_heads", int64_t{0}},
                                                {"head_size", int64_t{0}},
                                                {"activation", Text("gelu")},
                                                {"norm", Text("rms")},
                                                {"norm_eps", 1e-5},
                                                {"norm_offset", 0.0},
                                                {"norm_placement", Text("before")},
                                                {"positions", Text("rotary")},
                                                {"attention_bias", false},
                                                {"qkv_bias", false},
                                                {"qk_norm", Text("none")},
                                                {"attention_scale", 0.0},
                                                {"attention_softcap", 0.0},
                                                {"attention_sinks", false},
                                                {"attention_gate", false},
                                                {"window", int64_t{0}},
                                                {"mlp_bias", false},
                                                {"tied", true},
                                                {"embedding_scale", 1.0},
                                                {"logit_softcap", 0.0},
                                                {"rope_theta", 10000.0},
                                                {"rope_kind", Text("default")},
                                                {"rope_factor", 1.0},
                                                {"rope_original_len", int64_t{0}},
                                                {"rope_low_freq_factor", 1.0},
                                                {"rope_high_freq_factor", 4.0},
                                                {"rope_beta_fast", 32.0},
                                                {"rope_beta_slow", 1.0},
                                                {"rope_truncate", true},
                                                {"rope_mscale", 0.0},
                                                {"rope_mscale_all_dim", 0.0},
                                                {"rope_attention_factor", 0.0},
                                                {"rope_fraction", 1.0},
                                                {"rope_interleaved", false},
                                                {"rope_short_factor", std::vector<double>{}},
                                                {"rope_long_factor", std::vector<double>{}}};
  return kNeutral;
}

// Where a model comes from and how it is trained, not what it computes.
constexpr std::string_view kNotOfTheModel[] = {
    "type",    "family",  "init_from",       "allow_keys",      "init_std",
    "dropout", "seq_len", "label_smoothing", "recompute.paths", "recompute.ops"};

// By attention_windows or by kinds of layers.
std::vector<int64_t> windows(const ModelKeys& keys) {
  std::vector<int64_t> out;
  const auto* list = keys.find("attention_windows");
  const auto* pattern = keys.find("pattern");
  for (int64_t i = 0; i < keys.i64("layers"); ++i) {
    const auto at = static_cast<size_t>(i);
    int64_t window = keys.i64("window");
    if (list) {
      const auto& values = std::get<std::vector<int64_t>>(*list);
      if (!values.empty()) window = values[at % values.size()];
    }
    if (pattern) {
      const auto& kinds = std::get<std::vector<std::string>>(*pattern);
      if (const auto* own = keys.find("slots." + kinds.at(at % kinds.size()) + ".window"))
        window = std::get<int64_t>(*own);
    }
    out.push_back(window);
  }
  return out;
}

bool is_window_of_kind(std::string_view key) {
  return key.starts_with("slots.") && key.ends_with(".window") && std::count(key.begin(), key.end(), '.') == 2;
}

}  // namespace

ModelKeys complete(ModelKeys keys) {
  for (const Neutral& n : neutral())
    if (!keys.find(n.key)) keys.set(n.key, n.value);
  if (keys.i64("kv_heads") == 0) keys.set("kv_heads", keys.i64("heads"));
  if (keys.i64("head_size") == 0) keys.set("head_size", keys.i64("hidden") / keys.i64("heads"));
  if (keys.f64("attention_scale") == 0)
    keys.set("attention_scale", 1.0 / std::sqrt(static_cast<double>(keys.i64("head_size"))));
  if (keys.boolean("attention_bias")) keys.set("qkv_bias", true);
  std::vector<int64_t> list = windows(keys);
  // Layers of one branch are not the same model; windows by kind are.
  bool pairs = true;
  if (const auto* pattern = keys.find("pattern"))
    for (const std::string& kind : std::get<std::vector<std::string>>(*pattern))
      pairs = pairs && kind.find_first_of("*-ME") == std::string::npos && !kind.ends_with("_layer");
  std::vector<std::string> gone = {"window", "attention_windows"};
  if (pairs) gone.push_back("pattern");
  for (const auto& [key, value] : keys.all())
    if (is_window_of_kind(key)) gone.push_back(key);
  for (const std::string& key : gone) keys.erase(key);
  if (std::any_of(list.begin(), list.end(), [](int64_t w) { return w != 0; })) keys.set("windows", std::move(list));
  return keys;
}

namespace {

bool counts(std::string_view key) {
  return std::find(std::begin(kNotOfTheModel), std::end(kNotOfTheModel), key) == std::end(kNotOfTheModel);
}

}  // namespace

std::vector<std::string> differences(const ModelKeys& wanted, const ModelKeys& other) {
  std::vector<std::string> out;
  for (const auto& [key, value] : wanted.all()) {
    const ModelKeys::Value* there = other.find(key);
    if (!counts(key)) continue;
    if (!there || *there != value)
      out.push_back(fmt::format("{} = {}, expected {}", key, literal(value), there ? literal(*there) : "nothing"));
  }
  for (const auto& [key, value] : other.all())
    if (counts(key) && !wanted.find(key)) out.push_back(fmt::format("{} is not set, expected {}", key, literal(value)));
  return out;
}

}  // namespace gestalt::format_hf
