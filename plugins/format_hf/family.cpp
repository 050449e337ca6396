#include "plugins/format_hf/family.h"

#include <fmt/format.h>

#include <charconv>

#include "gestalt/error.hpp"

namespace gestalt::format_hf {

namespace {

using support::Json;

template <class T>
T number(std::string_view text) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void set_key(const KeyRule& rule, const Json& config, ModelKeys& out) {
  const bool stored = config.has(rule.hf) && !config.at(rule.hf).is_null();
  if (!stored && rule.absent.empty()) return;
  switch (rule.kind) {
    case KeyKind::kInteger: out.set(rule.key, stored ? config.i64(rule.hf) : number<int64_t>(rule.absent)); return;
    case KeyKind::kReal: out.set(rule.key, stored ? config.f64(rule.hf) : number<double>(rule.absent)); return;
    case KeyKind::kBoolean: out.set(rule.key, stored ? config.boolean(rule.hf) : rule.absent == "true"); return;
  }
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

ModelKeys model_keys(const Family& family, const Json& config) {
  ModelKeys out;
  out.set("type", "gestalt.decoder");
  for (const KeyRule& rule : family.keys) set_key(rule, config, out);
  if (family.more) family.more(config, out);
  return out;
}

}  // namespace gestalt::format_hf
