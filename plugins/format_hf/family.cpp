#include "plugins/format_hf/family.h"

#include <fmt/format.h>

#include <charconv>

#include "gestalt/error.hpp"
#include "plugins/format_hf/harmless_keys.h"
#include "plugins/format_hf/pattern.h"

namespace gestalt::format_hf {

namespace {

using support::Json;

constexpr std::string_view kRoot = "model.";

template <class T>
T number(std::string_view text) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string_view absent_value(const Family& family, std::string_view hf) {
  for (const Absent& a : family.absent)
    if (a.hf == hf) return a.value;
  return {};
}

void set_key(const Family& family, const KeyRule& rule, const ConfigReader& config, ModelKeys& out) {
  const std::string_view absent = absent_value(family, rule.hf);
  if (!config.has(rule.hf) && absent.empty()) return;
  switch (rule.kind) {
    case KeyKind::kInteger: out.set(rule.key, config.i64(rule.hf, number<int64_t>(absent))); return;
    case KeyKind::kReal: out.set(rule.key, config.f64(rule.hf, number<double>(absent))); return;
    case KeyKind::kBoolean: out.set(rule.key, config.boolean(rule.hf, absent == "true")); return;
  }
}

Json value_of(const KeyRule& rule, const ModelKeys& model) {
  switch (rule.kind) {
    case KeyKind::kInteger: return Json(model.i64(rule.key));
    case KeyKind::kReal: return Json(model.f64(rule.key));
    case KeyKind::kBoolean: break;
  }
  return Json(model.boolean(rule.key));
}

}  // namespace

const Family* find_family(std::string_view model_type) {
  for (const Family* f : families())
    if (f->model_type == model_type) return f;
  return nullptr;
}

std::vector<std::string_view> family_names() {
  std::vector<std::string_view> names;
  for (const Family* f : families()) names.push_back(f->model_type);
  return names;
}

Translated translate(const Family& family, const Json& json) {
  Translated out;
  const ConfigReader config(json);
  out.keys.set("type", "gestalt.decoder");
  out.keys.set("family", family.model_type);
  for (std::span<const KeyRule> rules : {family.keys, family.more_keys})
    for (const KeyRule& rule : rules) set_key(family, rule, config, out.keys);
  for (std::string_view key : kHarmlessKeys) config.mention(key);
  for (std::string_view key : family.harmless) config.mention(key);
  for (std::string_view key : kMustBeOff) config.expect(key, false);
  family.more(config, out.keys);
  out.unknown = config.unasked();
  return out;
}

FoundRule find_rule(const Family& family, std::string_view logical) {
  if (logical.substr(0, kRoot.size()) != kRoot) return {nullptr, {}};
  logical.remove_prefix(kRoot.size());
  for (std::span<const TensorRule> rules : {family.tensors, family.more_tensors})
    for (const TensorRule& rule : rules) {
      std::string layer;
      if (match_layer(rule.logical, logical, &layer)) return {&rule, layer};
    }
  return {nullptr, {}};
}

Json write_config(const Family& family, const ModelKeys& model, std::string_view dtype) {
  Json out = Json::object();
  out.set("architectures", Json::array({Json(family.architecture)}));
  out.set("model_type", family.model_type);
  for (std::span<const KeyRule> rules : {family.keys, family.more_keys})
    for (const KeyRule& rule : rules) out.set(rule.hf, value_of(rule, model));
  out.set("torch_dtype", dtype);
  out.set("use_cache", true);
  // The library's defaults name tokens that a small vocabulary does not have; generation_config.json names the model's.
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) out.set(key, Json());
  family.write_more(model, out);
  return out;
}

}  // namespace gestalt::format_hf
