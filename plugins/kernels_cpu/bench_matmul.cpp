// GFLOP/s of the matrix product for a table of shapes: bench_matmul [threads].
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "plugins/kernels_cpu/gemm.h"
#include "plugins/kernels_cpu/local_host.h"

namespace gestalt::kernels_cpu {
namespace {

struct Case {
  int64_t m, n, k;
  bool trans_a, trans_b;
  const char* what;
};

constexpr Case kCases[] = {
    {512, 512, 512, false, false, "square"},
    {1024, 1024, 1024, false, false, "square"},
    {1024, 1024, 1024, true, true, "square, both transposed"},
    {2048, 384, 128, false, true, "qkv forward"},
    {2048, 512, 128, false, true, "ffn up forward"},
    {2048, 128, 512, false, true, "ffn down forward"},
    {2048, 256, 128, false, true, "logits"},
    {2048, 128, 512, false, false, "ffn up, input gradient"},
    {512, 128, 2048, true, false, "ffn up, weight gradient"},
    {128, 512, 2048, true, false, "ffn down, weight gradient"},
    {64, 256, 32, false, true, "attention tile"},
};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class C>
double gflops(const Case& c, const Parallel& team) {
  std::vector<C> a(static_cast<size_t>(c.m * c.k), C(0.5)), b(static_cast<size_t>(c.n * c.k), C(0.25));
  std::vector<C> y(static_cast<size_t>(c.m * c.n));
  std::vector<char> scratch(static_cast<size_t>(multiply_scratch<C>(c.m, c.n, c.k)) + 64);
  void* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  const uint32_t dtype = sizeof(C) == 8 ? kF64 : kF32;
  const Product<C> product{.m = c.m,
                           .n = c.n,
                           .k = c.k,
                           .a = {a.data(), dtype, c.trans_a ? 1 : c.k, c.trans_a ? c.m : 1},
                           .b = {b.data(), dtype, c.trans_b ? 1 : c.n, c.trans_b ? c.k : 1},
                           .y = y.data(),
                           .y_dtype = dtype,
                           .y_row = c.n,
                           .y_col = 1};
  const double flops = 2.0 * static_cast<double>(c.m) * static_cast<double>(c.n) * static_cast<double>(c.k);
  double best = 0;
  for (const double stop = seconds() + 0.3; seconds() < stop;) {
    const double start = seconds();
    multiply(&team, product, aligned);
    best = std::max(best, flops / (seconds() - start) * 1e-9);
  }
  return best;
}

}  // namespace
}  // namespace gestalt::kernels_cpu

int main(int argc, char** argv) {
  using namespace gestalt::kernels_cpu;
  const LocalHost host(argc > 1 ? std::atoi(argv[1]) : 2);
  const gestalt::Parallel team(host.get());
  std::printf("%6s %6s %6s %8s %8s  %s\n", "m", "n", "k", "f32", "f64", "GFLOP/s");
  for (const Case& c : kCases)
    std::printf("%6lld %6lld %6lld %8.1f %8.1f  %s\n", static_cast<long long>(c.m), static_cast<long long>(c.n),
                static_cast<long long>(c.k), gflops<float>(c, team), gflops<double>(c, team), c.what);
}
