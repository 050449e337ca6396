#include "support/convert.h"

#include <bit>
#include <cstring>
#include <string>

#include "gestalt/dtype.hpp"
#include "gestalt/error.hpp"

namespace gestalt::support {

namespace {

struct BF16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

double value(double x) { return x; }
double value(float x) { return static_cast<double>(x); }
double value(BF16 x) { return static_cast<double>(std::bit_cast<float>(uint32_t{x.bits} << 16)); }
double value(F16 x) {
  const uint32_t exponent = x.bits >> 10 & 0x1fu, fraction = x.bits & 0x3ffu;
  uint32_t bits = (exponent + 112u) << 23 | fraction << 13;
  if (exponent == 0x1fu) bits = 0x7f800000u | fraction << 13;
  const double magnitude =
      exponent == 0 ? static_cast<double>(fraction) * 0x1p-24 : static_cast<double>(std::bit_cast<float>(bits));
  return x.bits & 0x8000u ? -magnitude : magnitude;
}

// Keeps `kept` bits of the fraction of a double, the rest rounded to nearest even; not for infinities and NaN.
double rounded(double x, int kept) {
  const int dropped = 52 - kept;
  uint64_t bits = std::bit_cast<uint64_t>(x);
  const uint64_t half = uint64_t{1} << (dropped - 1);
  bits += half - 1 + (bits >> dropped & 1u);
  return std::bit_cast<double>(bits & ~((uint64_t{1} << dropped) - 1));
}

void store(double x, double* out) { *out = x; }
void store(double x, float* out) { *out = static_cast<float>(x); }
void store(double x, BF16* out) {
  if (x != x) {
    out->bits = 0x7fc0u;
    return;
  }
  // Subnormal floats: the spacing is fixed, which the float's own rounding knows; 16 bits fewer are a second rounding.
  const double magnitude = x < 0 ? -x : x;
  const float f = magnitude < 0x1p-126 || magnitude >= 0x1p127 ? static_cast<float>(x) : static_cast<float>(rounded(x, 7));
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  out->bits = static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
void store(double x, F16* out) {
  const uint16_t sign = std::bit_cast<uint64_t>(x) >> 63 ? 0x8000u : 0;
  const double magnitude = x < 0 ? -x : x;
  if (x != x) {
    out->bits = static_cast<uint16_t>(sign | 0x7e00u);
  } else if (magnitude >= 65520.0) {
    out->bits = static_cast<uint16_t>(sign | 0x7c00u);
  } else if (magnitude < 0x1p-14) {
    // Adding 1.5 * 2^28 leaves 2^-24, the spacing of subnormals, as the last bit.
    const double shifted = magnitude + 0x1.8p28;
    out->bits = static_cast<uint16_t>(sign | static_cast<uint16_t>((shifted - 0x1.8p28) * 0x1p24));
  } else {
    const uint64_t bits = std::bit_cast<uint64_t>(rounded(magnitude, 10));
    out->bits = static_cast<uint16_t>(sign | static_cast<uint16_t>((bits >> 42) - (uint64_t{1008} << 10)));
  }
}

template <class From, class To>
void convert(const void* from, void* to, uint64_t num) {
  const auto* in = static_cast<const From*>(from);
  auto* out = static_cast<To*>(to);
  for (uint64_t i = 0; i < num; ++i) store(value(in[i]), &out[i]);
}

template <class From>
void convert_from(const void* from, void* to, uint32_t to_dtype, uint64_t num) {
  switch (to_dtype) {
    case kF64: return convert<From, double>(from, to, num);
    case kF32: return convert<From, float>(from, to, num);
    case kBF16: return convert<From, BF16>(from, to, num);
    default: return convert<From, F16>(from, to, num);
  }
}

}  // namespace

bool convertible(uint32_t dtype) noexcept {
  return dtype == kF64 || dtype == kF32 || dtype == kBF16 || dtype == kF16;
}

void convert_elements(const void* from, uint32_t from_dtype, void* to, uint32_t to_dtype, uint64_t num) {
  for (uint32_t d : {from_dtype, to_dtype})
    if (!convertible(d))
      throw InvalidArgument("[convert] got type " + std::string(name_of(d)) + ", expected f64, f32, bf16 or f16");
  if (from_dtype == to_dtype) {
    if (num) std::memcpy(to, from, num * static_cast<uint64_t>(size_of(from_dtype)));
    return;
  }
  switch (from_dtype) {
    case kF64: return convert_from<double>(from, to, to_dtype, num);
    case kF32: return convert_from<float>(from, to, to_dtype, num);
    case kBF16: return convert_from<BF16>(from, to, to_dtype, num);
    default: return convert_from<F16>(from, to, to_dtype, num);
  }
}

}  // namespace gestalt::support
