#include "plugins/format_hf/model_keys.h"

#include <fmt/format.h>

#include "gestalt/error.hpp"
#include "gestalt/str.hpp"

namespace gestalt::format_hf {

namespace {

// A TOML float: digits that keep the value, and a point or exponent so that it stays a float.
std::string real(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

struct Literal {
  std::string operator()(int64_t v) const { return fmt::format("{}", v); }
  std::string operator()(double v) const { return real(v); }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(const std::string& v) const { return fmt::format("\"{}\"", v); }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    std::string out = "[";
    for (const T& v : values) out += (out.size() > 1 ? ", " : "") + (*this)(v);
    return out + "]";
  }
};

ModelKeys::Value value_of(const gestalt_attr& a) {
  const auto list = [&](auto* data) { return std::vector(data, data + a.value.list.size); };
  switch (a.kind) {
    case GESTALT_ATTR_I64: return a.value.i;
    case GESTALT_ATTR_F64: return a.value.f;
    case GESTALT_ATTR_BOOL: return a.value.i != 0;
    case GESTALT_ATTR_STR: return std::string(view_of(a.value.s));
    case GESTALT_ATTR_I64_LIST: return list(static_cast<const int64_t*>(a.value.list.data));
    case GESTALT_ATTR_F64_LIST: return list(static_cast<const double*>(a.value.list.data));
    default: break;
  }
  std::vector<std::string> texts;
  for (const gestalt_str s : Attrs(&a, 1).str_list(view_of(a.name))) texts.emplace_back(view_of(s));
  return texts;
}

}  // namespace

ModelKeys::ModelKeys(Attrs keys) {
  for (const gestalt_attr& a : keys) set(view_of(a.name), value_of(a));
}

void ModelKeys::set(std::string_view key, Value value) {
  for (auto& [k, v] : keys_)
    if (k == key) {
      v = std::move(value);
      return;
    }
  keys_.emplace_back(key, std::move(value));
}

void ModelKeys::erase(std::string_view key) {
  std::erase_if(keys_, [&](const auto& k) { return k.first == key; });
}

const ModelKeys::Value* ModelKeys::find(std::string_view key) const {
  for (const auto& [k, v] : keys_)
    if (k == key) return &v;
  return nullptr;
}

template <class T>
const T& ModelKeys::get(std::string_view key) const {
  const Value* v = find(key);
  if (!v || !std::holds_alternative<T>(*v))
    throw Error(GESTALT_DATA_ERROR, fmt::format("[model.{}] {}, expected a value of another type", key,
                                                v ? "is " + literal(*v) : "is not set"));
  return std::get<T>(*v);
}
template const int64_t& ModelKeys::get(std::string_view) const;
template const double& ModelKeys::get(std::string_view) const;
template const bool& ModelKeys::get(std::string_view) const;
template const std::string& ModelKeys::get(std::string_view) const;
template const std::vector<double>& ModelKeys::get(std::string_view) const;

std::string ModelKeys::text() const {
  std::string out;
  for (const auto& [key, value] : keys_) out += key + " = " + literal(value) + "\n";
  return out;
}

std::string literal(const ModelKeys::Value& value) { return std::visit(Literal(), value); }

}  // namespace gestalt::format_hf
