// Elements from one floating type to another: f64, f32, bf16, f16. Rounded to nearest, ties to even.
#pragma once

#include <cstdint>

namespace gestalt::support {

bool convertible(uint32_t dtype) noexcept;
// INVALID_ARGUMENT for a type that is not convertible.
void convert_elements(const void* from, uint32_t from_dtype, void* to, uint32_t to_dtype, uint64_t num);

}  // namespace gestalt::support
