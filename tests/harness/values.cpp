#include "tests/harness/values.h"

#include <cstring>

#include "core/base/error.h"
#include "core/tensor/half.h"

namespace gestalt::harness {

namespace {

template <class T>
void put(double x, void* to) {
  const T t = static_cast<T>(x);
  std::memcpy(to, &t, sizeof t);
}
template <class T>
T get(const void* from) {
  T t;
  std::memcpy(&t, from, sizeof t);
  return t;
}

}  // namespace

int64_t count_of(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

void encode(uint32_t dtype, double x, void* to) {
  uint16_t half = 0;
  switch (dtype) {
    case GESTALT_F64:
      return put<double>(x, to);
    case GESTALT_F32:
      return put<float>(x, to);
    case GESTALT_BF16:
      half = core::bf16_from_f32(static_cast<float>(x));
      break;
    case GESTALT_F16:
      half = core::f16_from_f32(static_cast<float>(x));
      break;
    case GESTALT_I64:
      return put<int64_t>(x, to);
    case GESTALT_I32:
      return put<int32_t>(x, to);
    case GESTALT_U8:
    case GESTALT_BOOL:
      return put<uint8_t>(x, to);
    default:
      core::fail(GESTALT_INTERNAL, "[harness] unknown dtype {:#x}", dtype);
  }
  std::memcpy(to, &half, 2);
}

double decode(uint32_t dtype, const void* from) {
  switch (dtype) {
    case GESTALT_F64:
      return get<double>(from);
    case GESTALT_F32:
      return static_cast<double>(get<float>(from));
    case GESTALT_BF16:
      return static_cast<double>(core::f32_from_bf16(get<uint16_t>(from)));
    case GESTALT_F16:
      return static_cast<double>(core::f32_from_f16(get<uint16_t>(from)));
    case GESTALT_I64:
      return static_cast<double>(get<int64_t>(from));
    case GESTALT_I32:
      return get<int32_t>(from);
    case GESTALT_U8:
    case GESTALT_BOOL:
      return get<uint8_t>(from);
    default:
      core::fail(GESTALT_INTERNAL, "[harness] unknown dtype {:#x}", dtype);
  }
}

std::vector<unsigned char> encode(uint32_t dtype, const Values& values) {
  const size_t size = core::dtype_size(dtype);
  std::vector<unsigned char> bytes(values.v.size() * size);
  for (size_t i = 0; i < values.v.size(); ++i) encode(dtype, values.v[i], bytes.data() + i * size);
  return bytes;
}

Values decode(uint32_t dtype, const Shape& shape, const std::vector<unsigned char>& bytes) {
  const size_t size = core::dtype_size(dtype);
  Values out(shape);
  for (size_t i = 0; i < out.v.size(); ++i) out.v[i] = decode(dtype, bytes.data() + i * size);
  return out;
}

void round_to(uint32_t dtype, Values& values) {
  unsigned char bytes[8];
  for (double& x : values.v) {
    encode(dtype, x, bytes);
    x = decode(dtype, bytes);
  }
}

Values swapped(const Values& x) {
  Shape shape = x.shape;
  std::swap(shape[0], shape[1]);
  Values y(shape);
  const int64_t a = x.dim(0), b = x.dim(1), rest = a * b == 0 ? 0 : x.size() / (a * b);
  for (int64_t i = 0; i < a; ++i)
    for (int64_t j = 0; j < b; ++j)
      for (int64_t k = 0; k < rest; ++k) y[(j * a + i) * rest + k] = x[(i * b + j) * rest + k];
  return y;
}

}  // namespace gestalt::harness
