#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gestalt/abi/plugin.h"

namespace gestalt::core {

// Named dimensions and polynomials over them. A dimension is an int64: non-negative means the number itself, negative
// the handle of a polynomial with integer coefficients. Polynomials are canonical, so equal sizes have equal handles and
// "same shape" is an integer comparison even for sizes that are only known when a step runs.
class DimTable {
 public:
  DimTable();
  DimTable(const DimTable&) = delete;

  // The handle of a named dimension; declares it on first use. A later declaration may raise the maximum.
  int64_t named(std::string_view name, int64_t max);
  bool has(std::string_view name) const;

  int64_t mul(int64_t a, int64_t b);
  int64_t add(int64_t a, int64_t b);
  int64_t sub(int64_t a, int64_t b);
  int64_t div(int64_t a, int64_t b);  // 0 when b does not divide a

  int64_t max(int64_t a) const;    // no value of set() gives more
  int64_t value(int64_t a) const;  // with the values of set()
  void set(std::string_view name, int64_t value);
  bool dynamic(int64_t a) const { return a < 0; }
  std::string text(int64_t a) const;  // "tokens*4"
  const gestalt_dims* abi() const { return &abi_; }

 private:
  using Monomial = std::vector<int32_t>;  // sorted indices of names; empty: the constant term
  using Polynomial = std::map<Monomial, int64_t>;
  struct Name {
    std::string name;
    int64_t max;
    int64_t value;
  };

  Polynomial get(int64_t a) const;
  const Polynomial& polynomial(int64_t handle) const;
  int64_t intern(Polynomial p);
  template <class F>
  int64_t evaluate(int64_t a, F size_of) const;

  std::vector<Name> names_;
  std::vector<Polynomial> polynomials_;
  std::map<Polynomial, int64_t> handles_;
  gestalt_dims abi_;
};

}  // namespace gestalt::core
