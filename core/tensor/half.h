// Scalar conversions between f32 and the two 16-bit floats, kept as their bits. To 16 bits: round to nearest, ties to
// even; overflow gives infinity; NaN stays a (quiet) NaN. From 16 bits: exact.
#pragma once

#include <bit>
#include <cstdint>

namespace gestalt::core {

inline float f32_from_bf16(uint16_t h) { return std::bit_cast<float>(uint32_t{h} << 16); }

inline uint16_t bf16_from_f32(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

inline float f32_from_f16(uint16_t h) {
  const uint32_t sign = uint32_t{h} << 16 & 0x80000000u;
  const uint32_t rest = h & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  if (rest < 0x400u) {
    const float magnitude = static_cast<float>(rest) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((rest << 13) + (112u << 23)));
}

inline uint16_t f16_from_f32(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (rest >> 13 & 0x1ffu));
  if (rest >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (rest < 0x38800000u) {
    // Subnormal: adding 0.5 makes the hardware round at 2^-24, the spacing of f16 subnormals.
    const float rounded = std::bit_cast<float>(rest) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3f000000u));
  }
  return static_cast<uint16_t>(sign | (rest - (112u << 23) + 0xfffu + (rest >> 13 & 1u)) >> 13);
}

}  // namespace gestalt::core
