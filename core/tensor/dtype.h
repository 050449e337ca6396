#pragma once

#include <cstdint>
#include <string_view>

#include "gestalt/abi/base.h"

namespace gestalt::core {

// A GESTALT_F32, GESTALT_BF16, ... word, as in the ABI.
using DType = uint32_t;

// Bytes of one element. Fails for a dtype that Gestalt does not know.
uint64_t dtype_size(DType dtype);

// "f32", "bf16", ...; "unknown" for anything else, so that it can be used in messages.
std::string_view dtype_name(DType dtype);

// The inverse of dtype_name. `place` names the configuration key or argument in the error.
DType parse_dtype(std::string_view name, std::string_view place = "dtype");

bool is_dtype(DType dtype);
bool is_float(DType dtype);

// The type in which sums over `dtype` are kept: f64 for f64, f32 for the other floats, i64 for integers and bool.
DType accumulation_dtype(DType dtype);

}  // namespace gestalt::core
