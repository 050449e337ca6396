#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/attrs.h"
#include "tests/harness/values.h"

// What the harness must know of an op to check it in every way: a plain reference in double and inputs worth trying.
// One table a family of ops: describe_*.cpp.
namespace gestalt::harness {

inline constexpr uint32_t kTested = 0;  // an input's dtype: the one under test
inline constexpr uint32_t kWide = 1;    // f32, but f64 when that is under test

struct Arg {
  Shape shape;
  std::function<double(Random&, int64_t)> fill;  // element i
  uint32_t dtype = kTested;
  bool present = true;
  bool smooth = true;  // the gradient with respect to it is checked where the op has one
  bool plain = false;  // its values do not survive being made equal along dimension 0

  Arg constant() && {
    smooth = false;
    return std::move(*this);
  }
  Arg as(uint32_t type) && {
    dtype = type;
    smooth = smooth && type == kTested;
    return std::move(*this);
  }
  Arg ordered() && {
    plain = true;
    return std::move(*this);
  }
};

Arg real(Shape shape, double low = -1, double high = 1);
Arg away(Shape shape, double least);  // magnitudes from `least` to 1, either sign
Arg index(Shape shape, int64_t below, uint32_t dtype = GESTALT_I32);
Arg listed(Shape shape, std::vector<double> values, uint32_t dtype);  // not made equal along dimension 0
Arg wide(Shape shape, double low = -1, double high = 1);
Arg absent();

struct Case {
  std::string name;
  std::vector<Arg> in;
  core::Attrs attrs;
  // Fills inputs that follow from others, as a forward pass would.
  std::function<void(std::vector<Values>&)> derive{};
  bool large = false;  // too large for finite differences
};

struct Inputs {
  std::vector<Values> in;
  std::vector<bool> present;
  core::Attrs attrs;   // completed by the schema
  uint32_t dtype = 0;  // under test
  const Values& operator[](size_t i) const { return in[i]; }
  bool has(size_t i) const { return i < present.size() && present[i]; }
};

// The outputs, then the new values of the present inputs marked !mut.
using Reference = std::function<std::vector<Values>(const Inputs&)>;

struct BadValue {
  size_t input;
  double value;  // of its last element
  std::string what;
};

inline const std::vector<uint32_t> kFloats = {GESTALT_F64, GESTALT_F32, GESTALT_BF16, GESTALT_F16};
inline const std::vector<uint32_t> kFloatsAndIndices = {GESTALT_F64, GESTALT_F32, GESTALT_BF16,
                                                        GESTALT_F16, GESTALT_I32, GESTALT_I64};

struct Description {
  std::string op;
  Reference reference;
  std::vector<Case> cases;                     // the first is also used to make wrong inputs
  std::vector<uint32_t> dtypes = kFloats;      // some kernel must serve each
  bool gradient = true;                        // the op has one
  double loosen = 1;                           // of the tolerance of the arithmetic (not of the last rounding)
  // By backend: how many times a typical element is rounded to 16 bits inside a kernel for 16-bit types.
  std::map<std::string, double> inner_roundings{};
  bool any_dtype = false, any_rank = false;    // input 0 may be of any
  std::vector<size_t> any_size{};              // inputs of cases[0] whose last dimension nothing else fixes
  std::vector<std::pair<Case, Case>> grows{};  // prepared for the first, run with the second (ANY_SHAPE)
  std::vector<BadValue> bad_values{};          // in cases[0]: run must refuse them
  std::optional<Case> speed{};
  double flops = 0;  // of `speed`; 0: bandwidth counts
};

struct Family {
  Family(std::string name, std::vector<Description> (*make)());
  std::string name;
  std::vector<Description> (*make)();
};
const std::vector<Family>& families();

}  // namespace gestalt::harness
