#pragma once

#include <cstdint>
#include <string_view>

#include "gestalt/abi/base.h"

namespace gestalt {

using DType = uint32_t;
inline constexpr DType kF64 = GESTALT_F64, kF32 = GESTALT_F32, kBF16 = GESTALT_BF16, kF16 = GESTALT_F16,
                       kI64 = GESTALT_I64, kI32 = GESTALT_I32, kU8 = GESTALT_U8, kBool = GESTALT_BOOL;

// Bytes of one element.
constexpr int64_t size_of(DType dtype) { return (dtype >> 8 & 0xff) / 8; }

constexpr bool is_floating(DType dtype) { return (dtype & 0xff) == 2 || (dtype & 0xff) == 4; }

// "f32"; "?" for a type that this version does not know.
constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case kF64:
      return "f64";
    case kF32:
      return "f32";
    case kBF16:
      return "bf16";
    case kF16:
      return "f16";
    case kI64:
      return "i64";
    case kI32:
      return "i32";
    case kU8:
      return "u8";
    case kBool:
      return "bool";
    default:
      return "?";
  }
}

// 0 for an unknown name.
constexpr DType dtype_of(std::string_view name) {
  for (DType d : {kF64, kF32, kBF16, kF16, kI64, kI32, kU8, kBool})
    if (name_of(d) == name) return d;
  return 0;
}

}  // namespace gestalt
