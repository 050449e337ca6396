// Rotary positions. transformers 5 nests everything in rope_parameters; before, rope_theta stood beside rope_scaling.
#include <fmt/format.h>

#include <array>

#include "gestalt/error.hpp"
#include "plugins/format_hf/llama_parts.h"

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
    {"llama3", {{kFactor, {"low_freq_factor", "rope_low_freq_factor"}, {"high_freq_factor", "rope_high_freq_factor"}}}},
    {"longrope", {{kFactor, kAttentionFactor}}},
};

const Kind& kind_of(std::string_view name) {
  for (const Kind& k : kKinds)
    if (k.name == name) return k;
  throw Error(GESTALT_DATA_ERROR, fmt::format("[rope_type] got \"{}\", expected default, linear, dynamic, yarn, llama3 "
                                              "or longrope",
                                              name));
}

}  // namespace

void set_rope(const ConfigReader& config, ModelKeys& out, int64_t original_absent) {
  const ConfigReader* scaling = config.section("rope_parameters");
  if (!scaling) scaling = config.section("rope_scaling");
  static const Json kNone = Json::object();
  const ConfigReader none(kNone);
  if (!scaling) scaling = &none;
  for (const support::JsonMember& m : scaling->object().members())
    if (m.value.is_object())
      throw Error(
          GESTALT_DATA_ERROR,
          fmt::format("[rope_parameters] has its own numbers for '{}', expected one set for all layers", m.key));
  out.set("rope_theta", scaling->f64("rope_theta", config.f64("rope_theta", 10000.0)));
  if (const double part = scaling->f64("partial_rotary_factor", config.f64("partial_rotary_factor", 1.0)); part != 1.0)
    out.set("rope_fraction", part);
  const int64_t longest = config.i64("max_position_embeddings", 0);
  int64_t original =
      scaling->i64("original_max_position_embeddings",
                   config.i64("original_max_position_embeddings", original_absent ? original_absent : longest));

  std::string name = scaling->str("rope_type", scaling->str("type", "default"));
  scaling->mention("type");
  if (name == "su") name = "longrope";  // the first name of phi3's kind
  const Kind& kind = kind_of(name);
  if (name == "default") return;
  out.set("rope_kind", name);
  for (const Number& n : kind.numbers)
    if (!n.hf.empty() && scaling->has(n.hf)) out.set(n.key, scaling->f64(n.hf, 0));
  if (name == "dynamic") {
    // The library takes the context of the file for the original one.
    original = longest;
    out.set("seq_len", static_cast<int64_t>(static_cast<double>(longest) * scaling->f64("factor", 1)));
  }
  if (name != "linear") out.set("rope_original_len", original);
  if (name == "yarn" && scaling->has("truncate")) out.set("rope_truncate", scaling->boolean("truncate", true));
  if ((name == "yarn" || name == "longrope") && !scaling->has("factor") && original > 0)
    out.set("rope_factor", static_cast<double>(longest) / static_cast<double>(original));
  if (name != "longrope") return;
  out.set("rope_short_factor", scaling->f64_list("short_factor"));
  out.set("rope_long_factor", scaling->f64_list("long_factor"));
}

void write_rope(const ModelKeys& model, Json& out) {
  out.set("rope_theta", model.f64("rope_theta"));
  if (model.f64("rope_fraction") != 1) out.set("partial_rotary_factor", model.f64("rope_fraction"));
  const std::string& name = model.str("rope_kind");
  if (name == "default") return;
  Json scaling = Json::object();
  scaling.set("rope_type", name);
  for (const Number& n : kind_of(name).numbers)
    // 0: by the kind's rule.
    if (!n.hf.empty() && model.f64(n.key) != 0) scaling.set(n.hf, model.f64(n.key));
  if (name == "yarn" && !model.boolean("rope_truncate")) scaling.set("truncate", false);
  if (name == "dynamic") {
    out.set("max_position_embeddings", model.i64("rope_original_len"));
  } else if (name != "linear") {
    scaling.set("original_max_position_embeddings", model.i64("rope_original_len"));
    if (name == "longrope") out.set("original_max_position_embeddings", model.i64("rope_original_len"));
  }
  for (const auto& [hf, key] :
       {Number{"short_factor", "rope_short_factor"}, Number{"long_factor", "rope_long_factor"}}) {
    if (name != "longrope") break;
    Json list = Json::array();
    for (const double f : model.f64_list(key)) list.push(f);
    scaling.set(hf, std::move(list));
  }
  out.set("rope_scaling", std::move(scaling));
}

}  // namespace gestalt::format_hf
