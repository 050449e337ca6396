#include "support/convert.h"

#include <bit>
#include <vector>

#include "gestalt/dtype.hpp"
#include "gestalt/error.hpp"
#include "tests/catch_compat.hpp"

using namespace gestalt;

namespace {

uint16_t to16(float x, uint32_t dtype) {
  uint16_t out = 0;
  support::convert_elements(&x, kF32, &out, dtype, 1);
  return out;
}
float from16(uint16_t x, uint32_t dtype) {
  float out = 0;
  support::convert_elements(&x, dtype, &out, kF32, 1);
  return out;
}

}  // namespace

TEST_CASE("every finite 16-bit value comes back as it was") {
  for (uint32_t dtype : {kBF16, kF16})
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const auto half = static_cast<uint16_t>(bits);
      const float f = from16(half, dtype);
      if (f == f) REQUIRE(to16(f, dtype) == half);
    }
}

TEST_CASE("ties go to the even neighbour") {
  CHECK(to16(1.0f + 0x1p-8f, kBF16) == 0x3f80);
  CHECK(to16(1.0f + 3 * 0x1p-8f, kBF16) == 0x3f82);
  CHECK(to16(1.0f + 0x1p-11f, kF16) == 0x3c00);
  CHECK(to16(1.0f + 3 * 0x1p-11f, kF16) == 0x3c02);
  CHECK(to16(0x1p-25f, kF16) == 0);
  CHECK(to16(65519.0f, kF16) == 0x7bff);
  CHECK(to16(65520.0f, kF16) == 0x7c00);
}

TEST_CASE("an f64 is rounded once") {
  // Just above a tie of bf16 by less than f32 can hold.
  const double x = 1.0 + 0x1p-8 + 0x1p-40;
  uint16_t out = 0;
  support::convert_elements(&x, kF64, &out, kBF16, 1);
  CHECK(out == 0x3f81);
}

TEST_CASE("an integer type is refused by name") {
  int32_t i = 0;
  float f = 0;
  REQUIRE_THROWS_WITH(support::convert_elements(&i, kI32, &f, kF32, 1), Catch::Contains("i32"));
}
