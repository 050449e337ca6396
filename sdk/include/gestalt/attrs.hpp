#pragma once

#include <concepts>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gestalt/error.hpp"

namespace gestalt {

// Named values: the attributes of an op or the configuration of a component. Borrowed like the array behind it.
// The forms without a default throw when the name is missing; all throw when the type is another one.
class Attrs {
 public:
  Attrs() = default;
  Attrs(const gestalt_attr* attrs, uint64_t num) : attrs_(attrs), num_(num) {}

  bool has(std::string_view name) const { return find(name) != nullptr; }

  int64_t i64(std::string_view name) const { return need(name, GESTALT_ATTR_I64).value.i; }
  int64_t i64(std::string_view name, int64_t otherwise) const { return has(name) ? i64(name) : otherwise; }
  bool boolean(std::string_view name) const { return need(name, GESTALT_ATTR_BOOL).value.i != 0; }
  bool boolean(std::string_view name, bool otherwise) const { return has(name) ? boolean(name) : otherwise; }
  // Takes an integer too.
  double f64(std::string_view name) const {
    const gestalt_attr* a = find(name);
    if (a && a->kind == GESTALT_ATTR_I64) return static_cast<double>(a->value.i);
    return need(name, GESTALT_ATTR_F64).value.f;
  }
  double f64(std::string_view name, double otherwise) const { return has(name) ? f64(name) : otherwise; }
  std::string_view str(std::string_view name) const { return view_of(need(name, GESTALT_ATTR_STR).value.s); }
  std::string_view str(std::string_view name, std::string_view otherwise) const {
    return has(name) ? str(name) : otherwise;
  }

  std::span<const int64_t> i64_list(std::string_view name) const {
    return list<int64_t>(need(name, GESTALT_ATTR_I64_LIST));
  }
  std::span<const double> f64_list(std::string_view name) const {
    return list<double>(need(name, GESTALT_ATTR_F64_LIST));
  }
  std::span<const gestalt_str> str_list(std::string_view name) const {
    return list<gestalt_str>(need(name, GESTALT_ATTR_STR_LIST));
  }

  const gestalt_attr* data() const { return attrs_; }
  uint64_t size() const { return num_; }
  const gestalt_attr* begin() const { return attrs_; }
  const gestalt_attr* end() const { return attrs_ + num_; }

  // NULL when there is none.
  const gestalt_attr* find(std::string_view name) const {
    for (uint64_t i = 0; i < num_; ++i)
      if (view_of(attrs_[i].name) == name) return attrs_ + i;
    return nullptr;
  }

 private:
  const gestalt_attr& need(std::string_view name, uint64_t kind) const {
    static constexpr const char* kKinds[] = {"nothing", "i64", "f64", "str", "bool", "i64[]", "f64[]", "str[]"};
    const gestalt_attr* a = find(name);
    if (a && a->kind == kind) return *a;
    const char* got = !a ? "nothing" : a->kind < 8 ? kKinds[a->kind] : "an unknown kind";
    throw InvalidArgument("[" + std::string(name) + "] got " + got + ", expected " + kKinds[kind]);
  }
  template <class T>
  static std::span<const T> list(const gestalt_attr& a) {
    return {static_cast<const T*>(a.value.list.data), static_cast<size_t>(a.value.list.size)};
  }

  const gestalt_attr* attrs_ = nullptr;
  uint64_t num_ = 0;
};

// One attribute to pass on, as in {"eps", 1e-5}. Borrows strings and lists.
struct Attr : gestalt_attr {
  // A template, so that a pointer does not become a bool.
  template <std::integral I>
  Attr(std::string_view name, I i)
      : gestalt_attr{str_of(name),
                     std::same_as<I, bool> ? GESTALT_ATTR_BOOL : GESTALT_ATTR_I64,
                     {.i = static_cast<int64_t>(i)}} {}
  Attr(std::string_view name, double f) : gestalt_attr{str_of(name), GESTALT_ATTR_F64, {.f = f}} {}
  Attr(std::string_view name, std::string_view s) : gestalt_attr{str_of(name), GESTALT_ATTR_STR, {.s = str_of(s)}} {}
  Attr(std::string_view name, const char* s) : Attr(name, std::string_view(s)) {}
  Attr(std::string_view name, std::span<const int64_t> list)
      : gestalt_attr{str_of(name), GESTALT_ATTR_I64_LIST, {.list = {list.data(), list.size()}}} {}
  Attr(std::string_view name, std::span<const double> list)
      : gestalt_attr{str_of(name), GESTALT_ATTR_F64_LIST, {.list = {list.data(), list.size()}}} {}
  explicit Attr(const gestalt_attr& a) : gestalt_attr(a) {}
};

// A deep copy of attributes, for what must outlive a call.
class OwnedAttrs {
 public:
  OwnedAttrs() = default;
  explicit OwnedAttrs(Attrs from) : attrs_(from.begin(), from.end()) {
    for (gestalt_attr& a : attrs_) {
      a.name = keep(a.name);
      if (a.kind == GESTALT_ATTR_STR) a.value.s = keep(a.value.s);
      if (a.kind == GESTALT_ATTR_I64_LIST || a.kind == GESTALT_ATTR_F64_LIST)  // both of eight bytes
        a.value.list.data = keep({static_cast<const char*>(a.value.list.data), a.value.list.size * 8}).data;
      if (a.kind == GESTALT_ATTR_STR_LIST) a.value.list.data = keep_list(a.value.list);
    }
  }
  OwnedAttrs(const OwnedAttrs&) = delete;
  OwnedAttrs& operator=(const OwnedAttrs&) = delete;

  operator Attrs() const { return {attrs_.data(), attrs_.size()}; }

 private:
  gestalt_str keep(gestalt_str s) {
    if (s.size == 0) return {nullptr, 0};
    char* copy = new char[s.size];  // aligned for any element
    bytes_.emplace_back(copy);
    std::memcpy(copy, s.data, s.size);
    return {copy, s.size};
  }
  const gestalt_str* keep_list(gestalt_list list) {
    lists_.emplace_back(static_cast<const gestalt_str*>(list.data),
                        static_cast<const gestalt_str*>(list.data) + list.size);
    for (gestalt_str& s : lists_.back()) s = keep(s);
    return lists_.back().data();
  }

  std::vector<gestalt_attr> attrs_;
  std::vector<std::unique_ptr<char[]>> bytes_;
  std::vector<std::vector<gestalt_str>> lists_;
};

}  // namespace gestalt
