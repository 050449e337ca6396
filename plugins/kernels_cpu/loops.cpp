#include "plugins/kernels_cpu/loops.h"

namespace gestalt::kernels_cpu {

#define GESTALT_DECLARE_LOOPS(isa)      \
  namespace isa {                       \
  extern const Loops<float> kLoopsF32;  \
  extern const Loops<double> kLoopsF64; \
  }
GESTALT_DECLARE_LOOPS(baseline)
#ifdef __x86_64__
GESTALT_DECLARE_LOOPS(avx2)
GESTALT_DECLARE_LOOPS(avx512)
#endif

namespace {

enum class Isa { kBaseline, kAvx2, kAvx512 };

Isa best_isa() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw"))
    return Isa::kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::kAvx2;
#endif
  return Isa::kBaseline;
}

}  // namespace

#ifdef __x86_64__
template <>
const Loops<float>& loops<float>() {
  const Isa isa = best_isa();
  return isa == Isa::kAvx512 ? avx512::kLoopsF32 : isa == Isa::kAvx2 ? avx2::kLoopsF32 : baseline::kLoopsF32;
}

template <>
const Loops<double>& loops<double>() {
  const Isa isa = best_isa();
  return isa == Isa::kAvx512 ? avx512::kLoopsF64 : isa == Isa::kAvx2 ? avx2::kLoopsF64 : baseline::kLoopsF64;
}
#else
template <>
const Loops<float>& loops<float>() {
  return baseline::kLoopsF32;
}

template <>
const Loops<double>& loops<double>() {
  return baseline::kLoopsF64;
}
#endif

}  // namespace gestalt::kernels_cpu
