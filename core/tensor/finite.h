#pragma once

#include <cstdint>

namespace gestalt::core {

// Element `i` of packed floats in host memory, as a double.
double float_at(const char* data, uint32_t dtype, int64_t i);

// The index of the first element that is NaN or infinite, or -1. Other types than floats are always finite.
int64_t first_not_finite(const char* data, uint32_t dtype, uint64_t bytes);

}  // namespace gestalt::core
