// philox.h against published vectors, against the error function, and against its own bits.
#include "gestalt/philox.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/catch_compat.hpp"

namespace {

using namespace gestalt;

void expect(PhiloxBlock got, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  CHECK(got.word[0] == a);
  CHECK(got.word[1] == b);
  CHECK(got.word[2] == c);
  CHECK(got.word[3] == d);
}

}  // namespace

TEST_CASE("philox4x32-10 gives the known answers of Random123") {
  expect(philox(0, 0, 0, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  expect(philox(~uint64_t{0}, ~0u, ~0u, ~0u, ~0u), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
  expect(philox(0x299f31d0a4093822u, 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344), 0xd16cfe09, 0x94fdcceb,
         0x5001e420, 0x24126ea1);
}

TEST_CASE("uniforms are exact multiples of 2^-24 in [0, 1)") {
  CHECK(philox_uniform(0) == 0.0f);
  CHECK(philox_uniform(~0u) == 1.0f - 0x1p-24f);
  CHECK(philox_uniform(0x80000000u) == 0.5f);
}

TEST_CASE("normals invert the distribution function") {
  double worst = 0;
  uint32_t bits = 0;
  for (uint64_t i = 0; i < 200000; ++i, bits += 21474u) {
    const double z = philox_normal_fixed(bits) * 0x1p-28, p = (bits + 0.5) * 0x1p-32;
    // One Newton step of p(z) = erfc(-z / sqrt 2) / 2 tells how far z is off.
    const double density = std::exp(-z * z / 2) * 0.3989422804014327;
    const double distance = z < 0 ? 0.5 * std::erfc(-z * M_SQRT1_2) - p : (1 - p) - 0.5 * std::erfc(z * M_SQRT1_2);
    worst = std::max(worst, std::fabs(distance / density));
  }
  for (uint32_t low = 0; low < 100000; ++low) {  // the tail
    const double z = philox_normal_fixed(low) * 0x1p-28, p = (low + 0.5) * 0x1p-32;
    worst =
        std::max(worst, std::fabs((0.5 * std::erfc(-z * M_SQRT1_2) - p) / (std::exp(-z * z / 2) * 0.3989422804014327)));
  }
  INFO("worst distance " << worst);
  CHECK(worst < 1.3e-8);
}

TEST_CASE("normals are symmetric to the bit") {
  for (uint32_t bits : {0u, 1u, 12345u, 0x7fffffffu, 0x12345678u})
    CHECK(philox_normal_fixed(bits) == -philox_normal_fixed(~bits));
}

TEST_CASE("normals keep their bits") {
  const PhiloxBlock block = philox_parameter(1234, philox_name_hash("model.head.weight", 17), 7);
  uint64_t digest = 0xcbf29ce484222325u;
  for (uint32_t i = 0; i < 100000; ++i) {
    const PhiloxBlock b = philox_token(1234, 5, i, 3, 2, 1);
    for (uint32_t w : b.word) {
      const float z = philox_normal(w);
      uint32_t bits;
      std::memcpy(&bits, &z, 4);
      digest = (digest ^ bits) * 0x100000001b3u;
    }
  }
  float z[4];
  for (int i = 0; i < 4; ++i) z[i] = philox_normal(block.word[i]);
  INFO(std::hexfloat << z[0] << " " << z[1] << " " << z[2] << " " << z[3]);
  CHECK(z[0] == -0x1.3cec9ep-2f);
  CHECK(z[1] == 0x1.ece3c8p-3f);
  CHECK(z[2] == -0x1.3f6a56p+0f);
  CHECK(z[3] == 0x1.060218p-2f);
  CHECK(digest == 0xf3185bc330b4aa7fu);
}
