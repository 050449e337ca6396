#include "core/ops/attrs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "core/base/host.h"

namespace gestalt::core {

namespace {

AttrValue copy_of(const gestalt_attr& a) {
  switch (a.kind) {
    case GESTALT_ATTR_I64: return a.value.i;
    case GESTALT_ATTR_F64: return a.value.f;
    case GESTALT_ATTR_STR: return std::string(view_of(a.value.s));
    case GESTALT_ATTR_BOOL: return a.value.i != 0;
    case GESTALT_ATTR_I64_LIST: {
      auto* p = static_cast<const int64_t*>(a.value.list.data);
      return std::vector<int64_t>(p, p + a.value.list.size);
    }
    case GESTALT_ATTR_F64_LIST: {
      auto* p = static_cast<const double*>(a.value.list.data);
      return std::vector<double>(p, p + a.value.list.size);
    }
    case GESTALT_ATTR_STR_LIST: {
      auto* p = static_cast<const gestalt_str*>(a.value.list.data);
      std::vector<std::string> v;
      for (uint64_t i = 0; i < a.value.list.size; ++i) v.emplace_back(view_of(p[i]));
      return v;
    }
    default:
      fail(GESTALT_INVALID_ARGUMENT, "[{}] attribute kind {} is unknown, expected 1 to 7", view_of(a.name), a.kind);
  }
}

template <class T>
const T& get(const Attrs& attrs, std::string_view name) {
  const AttrValue* v = attrs.find(name);
  const T* t = v ? std::get_if<T>(v) : nullptr;
  if (!t) fail(GESTALT_INTERNAL, "[{}] attribute {}", name, v ? "has another type" : "is absent");
  return *t;
}

}  // namespace

Attrs::Attrs(const gestalt_attr* attrs, uint64_t num) {
  for (uint64_t i = 0; i < num; ++i) set(view_of(attrs[i].name), copy_of(attrs[i]));
}

const AttrValue* Attrs::find(std::string_view name) const {
  auto it = values_.find(name);
  return it == values_.end() ? nullptr : &it->second;
}

int64_t Attrs::i64(std::string_view name) const { return get<int64_t>(*this, name); }
double Attrs::f64(std::string_view name) const { return get<double>(*this, name); }
bool Attrs::boolean(std::string_view name) const { return get<bool>(*this, name); }
const std::string& Attrs::str(std::string_view name) const { return get<std::string>(*this, name); }
const std::vector<int64_t>& Attrs::i64_list(std::string_view name) const {
  return get<std::vector<int64_t>>(*this, name);
}

std::string Attrs::text() const {
  std::string out;
  for (const auto& [name, value] : values_) {
    if (!out.empty()) out += ", ";
    out += name + "=" + std::visit([](const auto& v) { return fmt::format("{}", v); }, value);
  }
  return out;
}

AttrArray::AttrArray(const Attrs& attrs) : attrs_(attrs) {
  string_lists_.reserve(attrs_.values().size());
  for (const auto& [name, value] : attrs_.values()) {
    gestalt_attr a{};
    a.name = str_of(name);
    a.kind = kAttrKinds[value.index()];
    if (auto* i = std::get_if<int64_t>(&value)) a.value.i = *i;
    if (auto* f = std::get_if<double>(&value)) a.value.f = *f;
    if (auto* b = std::get_if<bool>(&value)) a.value.i = *b;
    if (auto* s = std::get_if<std::string>(&value)) a.value.s = str_of(*s);
    if (auto* l = std::get_if<std::vector<int64_t>>(&value)) a.value.list = {l->data(), l->size()};
    if (auto* l = std::get_if<std::vector<double>>(&value)) a.value.list = {l->data(), l->size()};
    if (auto* l = std::get_if<std::vector<std::string>>(&value)) {
      auto& strings = string_lists_.emplace_back();
      for (const std::string& s : *l) strings.push_back(str_of(s));
      a.value.list = {strings.data(), strings.size()};
    }
    array_.push_back(a);
  }
}

}  // namespace gestalt::core
