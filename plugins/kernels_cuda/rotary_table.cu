#include <cmath>

#include "gestalt/op_plans/rotary_table.hpp"
#include "plugins/kernels_cuda/rows.cuh"

namespace gestalt::kernels_cuda {
namespace {

constexpr int64_t kMostPairs = 256;

struct TableArgs {
  Side positions, table;
  int64_t position_step, row, column, tokens, half, original_max;
  double theta, factor, attention_factor;
  bool dynamic, two_lists;  // by the longest sequence
  double frequencies[kMostPairs], long_frequencies[kMostPairs];
};

__global__ void __launch_bounds__(kThreads) rotary_table(const __grid_constant__ TableArgs a) {
  __shared__ double grown;
  bool beyond = false;
  if (a.dynamic || a.two_lists) {
    int64_t longest = 0;
    for (int64_t t = threadIdx.x; t < a.tokens; t += kThreads)
      longest = max(longest, load_one<int64_t>(a.positions, t * a.position_step) + 1);
    longest = group_reduce<kThreads>(longest, [](int64_t x, int64_t y) { return x > y ? x : y; });
    beyond = longest > a.original_max;
    if (threadIdx.x == 0) {
      grown = 0;
      if (a.dynamic && beyond) {
        const double ratio = static_cast<double>(longest) / static_cast<double>(a.original_max);
        const double d = 2 * static_cast<double>(a.half);
        grown = a.half == 1 ? a.theta : a.theta * pow(a.factor * ratio - (a.factor - 1), d / (d - 2));
      }
    }
    __syncthreads();
  }
  const bool grows = a.dynamic && beyond;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; item < a.tokens * a.half;
       item += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t t = item / a.half, i = item % a.half;
    const double f = grows                   ? pow(grown, -static_cast<double>(i) / static_cast<double>(a.half))
                     : a.two_lists && beyond ? a.long_frequencies[i]
                                             : a.frequencies[i];
    double sine, cosine;
    sincos(static_cast<double>(load_one<int64_t>(a.positions, t * a.position_step)) * f, &sine, &cosine);
    store_one<double>(a.table, t * a.row + i * a.column, a.attention_factor * cosine);
    store_one<double>(a.table, t * a.row + (a.half + i) * a.column, a.attention_factor * sine);
  }
}

class RotaryTable : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.rotary_table";

  explicit RotaryTable(Plan plan) : p_(plan) {
    if (p_.half > kMostPairs)
      throw Unsupported(place(plan) + "dims: got " + std::to_string(2 * p_.half) + ", expected at most " +
                        std::to_string(2 * kMostPairs));
  }

  void run(Call call) const {
    const View positions = call.in(0), table = call.out(0);
    TableArgs a{.positions = side_of(positions),
                .table = side_of(table),
                .position_step = positions.stride(0),
                .row = table.stride(0),
                .column = table.stride(1),
                .tokens = positions.dim(0),
                .half = p_.half,
                .original_max = p_.original_max,
                .theta = p_.theta,
                .factor = p_.factor,
                .attention_factor = p_.attention_factor,
                .dynamic = p_.kind == p_.kDynamic,
                .two_lists = p_.kind == p_.kLongrope,
                .frequencies = {},
                .long_frequencies = {}};
    if (a.tokens == 0) return;
    std::copy(p_.frequencies.begin(), p_.frequencies.end(), a.frequencies);
    std::copy(p_.long_frequencies.begin(), p_.long_frequencies.end(), a.long_frequencies);
    const unsigned blocks = std::min(blocks_for(a.tokens * p_.half), 1024u);
    rotary_table<<<blocks, kThreads, 0, stream_of(call)>>>(a);
    check_launch(op);
  }

 private:
  RotaryTablePlan p_;
};
GESTALT_KERNEL(RotaryTable);

}  // namespace
}  // namespace gestalt::kernels_cuda
