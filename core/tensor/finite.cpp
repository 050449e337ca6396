#include "core/tensor/finite.h"

#include <cmath>
#include <cstring>

#include "core/tensor/dtype.h"
#include "core/tensor/half.h"

namespace gestalt::core {

namespace {

template <class T>
T read(const char* data, int64_t i) {
  T x;
  std::memcpy(&x, data + static_cast<uint64_t>(i) * sizeof(T), sizeof(T));
  return x;
}

}  // namespace

double float_at(const char* data, uint32_t dtype, int64_t i) {
  switch (dtype) {
    case GESTALT_F64: return read<double>(data, i);
    case GESTALT_F32: return static_cast<double>(read<float>(data, i));
    case GESTALT_BF16: return static_cast<double>(f32_from_bf16(read<uint16_t>(data, i)));
    default: return static_cast<double>(f32_from_f16(read<uint16_t>(data, i)));
  }
}

int64_t first_not_finite(const char* data, uint32_t dtype, uint64_t bytes) {
  if (!is_float(dtype)) return -1;
  const auto n = static_cast<int64_t>(bytes / dtype_size(dtype));
  for (int64_t i = 0; i < n; ++i)
    if (!std::isfinite(float_at(data, dtype, i))) return i;
  return -1;
}

}  // namespace gestalt::core
