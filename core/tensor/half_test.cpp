#include "core/tensor/half.h"

#include <cmath>
#include <limits>

#include "tests/catch_compat.hpp"

namespace gestalt::core {

namespace {
// The nearest 16-bit value by search over all of them: slow, obviously right.
template <class Decode>
uint16_t nearest(float f, Decode decode, uint16_t infinity) {
  const double target = std::fabs(static_cast<double>(f));
  uint16_t best = 0;
  double best_error = std::numeric_limits<double>::infinity();
  for (uint32_t h = 0; h <= infinity; ++h) {
    // Infinity counts as the next value after the largest: that is where ties to even overflow.
    const double previous = decode(static_cast<uint16_t>(infinity - 1)),
                 before = decode(static_cast<uint16_t>(infinity - 2));
    const double value = h == infinity ? previous + (previous - before) : decode(static_cast<uint16_t>(h));
    const double error = std::fabs(value - target);
    if (error < best_error || (error == best_error && h % 2 == 0)) best = static_cast<uint16_t>(h), best_error = error;
  }
  return static_cast<uint16_t>(best | (std::signbit(f) ? 0x8000u : 0u));
}
}  // namespace

TEST_CASE("every 16-bit float survives the way to f32 and back") {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const auto bits = static_cast<uint16_t>(h);
    if (std::isnan(f32_from_f16(bits))) {
      REQUIRE(std::isnan(f32_from_f16(f16_from_f32(f32_from_f16(bits)))));
    } else {
      REQUIRE(f16_from_f32(f32_from_f16(bits)) == bits);
    }
    if (std::isnan(f32_from_bf16(bits))) {
      REQUIRE(std::isnan(f32_from_bf16(bf16_from_f32(f32_from_bf16(bits)))));
    } else {
      REQUIRE(bf16_from_f32(f32_from_bf16(bits)) == bits);
    }
  }
}

TEST_CASE("f32 rounds to the nearest f16, ties to even") {
  for (float f :
       {1.0f,          1.00048828125f, 1.00146484375f, 0.1f,          65504.0f,      65519.0f,       65520.0f,
        65535.0f,      65536.0f,       1e9f,           5.9604645e-8f, 2.9802322e-8f, 2.98023259e-8f, 8.9406967e-8f,
        6.1035156e-5f, 6.1e-5f,        0.0f,           -0.0f,         -3.14159f,     1e-30f}) {
    CAPTURE(f);
    CHECK(f16_from_f32(f) == (std::fabs(f) >= 65520.0f ? 0x7c00 : nearest(f, f32_from_f16, 0x7c00)));
  }
}

TEST_CASE("f32 rounds to the nearest bf16, ties to even") {
  for (float f : {1.0f, 1.00390625f, 1.01171875f, 0.1f, 3.0e38f, 1e-39f, 1e-45f, -2.7182817f, 0.0f, -0.0f}) {
    CAPTURE(f);
    CHECK(bf16_from_f32(f) == nearest(f, f32_from_bf16, 0x7f80));
  }
  CHECK(bf16_from_f32(std::numeric_limits<float>::max()) == 0x7f80);
}

TEST_CASE("infinities and NaN keep their kind") {
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(f16_from_f32(inf) == 0x7c00);
  CHECK(f16_from_f32(-inf) == 0xfc00);
  CHECK(bf16_from_f32(-inf) == 0xff80);
  // A NaN whose payload lies only in the bits that are cut off must not turn into infinity.
  const float nan = std::bit_cast<float>(0x7f800001u);
  CHECK(std::isnan(f32_from_f16(f16_from_f32(nan))));
  CHECK(std::isnan(f32_from_bf16(bf16_from_f32(nan))));
}

}  // namespace gestalt::core
