// Rotary positions. transformers 5 nests everything in rope_parameters; before, rope_theta stood beside rope_scaling.
#include <fmt/format.h>

#include <array>

#include "gestalt/error.hpp"
#include "plugins/format_hf/model_keys.h"

namespace gestalt::format_hf {

namespace {

using support::Json;

struct Number {
  std::string_view hf, key;
};
// What each kind reads beside its lengths.
struct Kind {
  std::string_view name;
  std::array<Number, 6> numbers;
};
constexpr Number kFactor = {"factor", "rope_factor"};
constexpr Number kAttentionFactor = {"attention_factor", "rope_attention_factor"};
constexpr Kind kKinds[] = {
    {"default", {}},
    {"linear", {{kFactor}}},
    {"dynamic", {{kFactor}}},
    {"yarn",
     {{kFactor,
       kAttentionFactor,
       {"beta_fast", "rope_beta_fast"},
       {"beta_slow", "rope_beta_slow"},
       {"mscale", "rope_mscale"},
       {"mscale_all_dim", "rope_mscale_all_dim"}}}},
    {"llama3",
     {{kFactor, {"low_freq_factor", "rope_low_freq_factor"}, {"high_freq_factor", "rope_high_freq_factor"}}}},
    {"longrope", {{kFactor, kAttentionFactor}}},
};

std::vector<double> numbers(const Json& scaling, std::string_view key) {
  std::vector<double> out;
  for (const Json& v : scaling.at(key).items()) out.push_back(v.f64());
  return out;
}

}  // namespace

void set_rope(const Json& config, ModelKeys& out, double theta) {
  const Json* scaling = config.find("rope_parameters");
  if (!scaling || scaling->is_null()) scaling = config.find("rope_scaling");
  const Json none = Json::object();
  if (!scaling || scaling->is_null()) scaling = &none;
  for (const support::JsonMember& m : scaling->members())
    if (m.value.is_object())
      throw Error(GESTALT_DATA_ERROR,
                  fmt::format("[rope_parameters] has its own numbers for '{}', expected one set for all layers", m.key));
  out.set("rope_theta", scaling->f64("rope_theta", config.f64("rope_theta", theta)));
  if (const double part = scaling->f64("partial_rotary_factor", config.f64("partial_rotary_factor", 1.0)); part != 1.0)
    out.set("rope_fraction", part);

  std::string name = scaling->str("rope_type", scaling->str("type", "default"));
  if (name == "su") name = "longrope";  // the first name of phi3's kind
  const Kind* kind = nullptr;
  for (const Kind& k : kKinds)
    if (k.name == name) kind = &k;
  if (!kind)
    throw Error(GESTALT_DATA_ERROR, fmt::format("[rope_type] got \"{}\", expected default, linear, dynamic, yarn, llama3 "
                                                "or longrope", name));
  if (name == "default") return;
  out.set("rope_kind", name);
  for (const Number& n : kind->numbers)
    if (!n.hf.empty() && scaling->has(n.hf) && !scaling->at(n.hf).is_null()) out.set(n.key, scaling->f64(n.hf));
  const int64_t longest = config.i64("max_position_embeddings", 0);
  const int64_t original = scaling->i64("original_max_position_embeddings",
                                        config.i64("original_max_position_embeddings", longest));
  if (name != "linear") out.set("rope_original_len", original);
  if (name == "yarn" && scaling->has("truncate")) out.set("rope_truncate", scaling->boolean("truncate"));
  if (name != "longrope") return;
  if (!scaling->has("factor") && original > 0)
    out.set("rope_factor", static_cast<double>(longest) / static_cast<double>(original));
  out.set("rope_short_factor", std::span<const double>(numbers(*scaling, "short_factor")));
  out.set("rope_long_factor", std::span<const double>(numbers(*scaling, "long_factor")));
}

}  // namespace gestalt::format_hf
