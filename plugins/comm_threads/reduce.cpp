#include "plugins/comm_threads/reduce.h"

#include <algorithm>
#include <array>
#include <string>

#include "gestalt/abi/comm.h"
#include "gestalt/dtype.hpp"
#include "gestalt/error.hpp"
#include "support/convert.h"

namespace gestalt::comm_threads {

namespace {

constexpr int64_t kBlock = 1024;

template <class T>
void combine(int32_t op, T* sum, const T* x, int64_t n) {
  switch (op) {
    case GESTALT_REDUCE_SUM:
      for (int64_t i = 0; i < n; ++i) sum[i] += x[i];
      break;
    case GESTALT_REDUCE_MAX:
      for (int64_t i = 0; i < n; ++i) sum[i] = std::max(sum[i], x[i]);
      break;
    default:
      for (int64_t i = 0; i < n; ++i) sum[i] = std::min(sum[i], x[i]);
  }
}

template <class T>
void reduce_native(int32_t op, const std::vector<const void*>& in, const std::vector<void*>& out, int64_t begin,
                   int64_t end) {
  std::array<T, kBlock> sum;
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t n = std::min(kBlock, end - at);
    std::copy_n(static_cast<const T*>(in[0]) + at, n, sum.data());
    for (size_t k = 1; k < in.size(); ++k) combine(op, sum.data(), static_cast<const T*>(in[k]) + at, n);
    for (void* o : out) std::copy_n(sum.data(), n, static_cast<T*>(o) + at);
  }
}

void reduce_half(uint32_t dtype, int32_t op, const std::vector<const void*>& in, const std::vector<void*>& out,
                 int64_t begin, int64_t end) {
  std::array<float, kBlock> sum, x;
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t n = std::min(kBlock, end - at);
    auto read = [&](size_t k, float* to) {
      support::convert_elements(static_cast<const uint16_t*>(in[k]) + at, dtype, to, kF32, static_cast<uint64_t>(n));
    };
    read(0, sum.data());
    for (size_t k = 1; k < in.size(); ++k) {
      read(k, x.data());
      combine(op, sum.data(), x.data(), n);
    }
    for (void* o : out)
      support::convert_elements(sum.data(), kF32, static_cast<uint16_t*>(o) + at, dtype, static_cast<uint64_t>(n));
  }
}

}  // namespace

void reduce_elements(uint32_t dtype, int32_t op, const std::vector<const void*>& in, const std::vector<void*>& out,
                     int64_t begin, int64_t end) {
  switch (dtype) {
    case kF64:
      return reduce_native<double>(op, in, out, begin, end);
    case kF32:
      return reduce_native<float>(op, in, out, begin, end);
    case kBF16:
    case kF16:
      return reduce_half(dtype, op, in, out, begin, end);
    case kI64:
      return reduce_native<int64_t>(op, in, out, begin, end);
    case kI32:
      return reduce_native<int32_t>(op, in, out, begin, end);
    default:
      throw InvalidArgument("[comm] cannot reduce elements of type " + std::string(name_of(dtype)) +
                            ", expected f64, f32, bf16, f16, i64 or i32");
  }
}

}  // namespace gestalt::comm_threads
