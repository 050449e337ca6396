#include "core/ops/dims.h"

#include <algorithm>

#include "core/base/error.h"

namespace gestalt::core {

namespace {

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) fail(GESTALT_INVALID_ARGUMENT, "[shape] {} * {} overflows 64 bits", a, b);
  return r;
}

int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) fail(GESTALT_INVALID_ARGUMENT, "[shape] {} + {} overflows 64 bits", a, b);
  return r;
}

DimTable* table(void* self) { return static_cast<DimTable*>(self); }

// The C functions have no way to report an error; a size that overflows becomes 0, which no caller takes for a shape.
template <class F>
int64_t guarded(F f) noexcept {
  try {
    return f();
  } catch (...) {
    return 0;
  }
}

int64_t abi_mul(void* s, int64_t a, int64_t b) noexcept {
  return guarded([&] { return table(s)->mul(a, b); });
}
int64_t abi_add(void* s, int64_t a, int64_t b) noexcept {
  return guarded([&] { return table(s)->add(a, b); });
}
int64_t abi_div(void* s, int64_t a, int64_t b) noexcept {
  return guarded([&] { return table(s)->div(a, b); });
}
int64_t abi_max(void* s, int64_t a) noexcept {
  return guarded([&] { return table(s)->max(a); });
}

}  // namespace

DimTable::DimTable() : abi_{sizeof(gestalt_dims), this, abi_mul, abi_add, abi_div, abi_max} {}

int64_t DimTable::named(std::string_view name, int64_t max) {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i].name != name) continue;
    names_[i].max = std::max(names_[i].max, max);
    return intern({{{static_cast<int32_t>(i)}, 1}});
  }
  names_.push_back({std::string(name), max, max});
  return intern({{{static_cast<int32_t>(names_.size() - 1)}, 1}});
}

bool DimTable::has(std::string_view name) const {
  return std::any_of(names_.begin(), names_.end(), [&](const Name& n) { return n.name == name; });
}

DimTable::Polynomial DimTable::get(int64_t a) const {
  if (a < 0) return polynomial(a);
  if (a == 0) return {};
  return {{{}, a}};
}

const DimTable::Polynomial& DimTable::polynomial(int64_t handle) const {
  const auto index = static_cast<uint64_t>(-(handle + 1));
  if (index >= polynomials_.size())
    fail(GESTALT_INVALID_ARGUMENT,
         "[shape] got size {}, expected 0 or more, or the handle of a named dimension", handle);
  return polynomials_[index];
}

int64_t DimTable::intern(Polynomial p) {
  std::erase_if(p, [](const auto& term) { return term.second == 0; });
  if (p.empty()) return 0;
  if (p.size() == 1 && p.begin()->first.empty() && p.begin()->second > 0) return p.begin()->second;
  auto it = handles_.find(p);
  if (it != handles_.end()) return it->second;
  polynomials_.push_back(p);
  const int64_t handle = -static_cast<int64_t>(polynomials_.size());
  handles_.emplace(std::move(p), handle);
  return handle;
}

int64_t DimTable::mul(int64_t a, int64_t b) {
  if (a >= 0 && b >= 0) return checked_mul(a, b);
  Polynomial r;
  for (const auto& [ma, ca] : get(a)) {
    for (const auto& [mb, cb] : get(b)) {
      Monomial m = ma;
      m.insert(m.end(), mb.begin(), mb.end());
      std::sort(m.begin(), m.end());
      int64_t& c = r[m];
      c = checked_add(c, checked_mul(ca, cb));
    }
  }
  return intern(std::move(r));
}

int64_t DimTable::add(int64_t a, int64_t b) {
  if (a >= 0 && b >= 0) return checked_add(a, b);
  Polynomial r = get(a);
  for (const auto& [m, c] : get(b)) {
    int64_t& t = r[m];
    t = checked_add(t, c);
  }
  return intern(std::move(r));
}

int64_t DimTable::sub(int64_t a, int64_t b) {
  if (a >= 0 && b >= 0 && a >= b) return a - b;
  Polynomial r = get(a);
  for (const auto& [m, c] : get(b)) {
    int64_t& t = r[m];
    if (__builtin_sub_overflow(t, c, &t)) fail(GESTALT_INVALID_ARGUMENT, "[shape] {} - {} overflows 64 bits", a, b);
  }
  return intern(std::move(r));
}

int64_t DimTable::div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (a >= 0 && b > 0) return a % b == 0 ? a / b : 0;
  const Polynomial pb = get(b);
  if (pb.size() == 1) {  // by a monomial: divide every term
    const auto& [mb, cb] = *pb.begin();
    Polynomial r;
    for (const auto& [ma, ca] : get(a)) {
      if (ca % cb != 0 || !std::includes(ma.begin(), ma.end(), mb.begin(), mb.end())) return 0;
      Monomial m;
      std::set_difference(ma.begin(), ma.end(), mb.begin(), mb.end(), std::back_inserter(m));
      r[m] = ca / cb;
    }
    return intern(std::move(r));
  }
  return a == b ? 1 : 0;
}

template <class F>
int64_t DimTable::evaluate(int64_t a, F size_of) const {
  if (a >= 0) return a;
  int64_t sum = 0;
  for (const auto& [m, c] : polynomial(a)) {
    int64_t term = c;
    for (int32_t i : m) term = checked_mul(term, size_of(names_[static_cast<size_t>(i)], c));
    sum = checked_add(sum, term);
  }
  return sum;
}

// A term that is subtracted is largest where its names are 0.
int64_t DimTable::max(int64_t a) const {
  return evaluate(a, [](const Name& n, int64_t c) { return c < 0 ? 0 : n.max; });
}

int64_t DimTable::value(int64_t a) const {
  return evaluate(a, [](const Name& n, int64_t) { return n.value; });
}

void DimTable::set(std::string_view name, int64_t value) {
  for (Name& n : names_) {
    if (n.name != name) continue;
    if (value < 0 || value > n.max)
      fail(GESTALT_INVALID_ARGUMENT, "[{}] size out of range, got {}, expected 0 to {} (the program was planned for that)",
           name, value, n.max);
    n.value = value;
    return;
  }
}

std::string DimTable::text(int64_t a) const {
  if (a >= 0) return std::to_string(a);
  std::string out;
  for (const auto& [m, c] : polynomial(a)) {
    if (!out.empty()) out += "+";
    std::string term;
    for (int32_t i : m) term += (term.empty() ? "" : "*") + names_[static_cast<size_t>(i)].name;
    if (term.empty())
      term = std::to_string(c);
    else if (c != 1)
      term += "*" + std::to_string(c);
    out += term;
  }
  return out;
}

}  // namespace gestalt::core
