#include <cmath>

#include "gestalt/op_plans/rotary_table.hpp"
#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"

namespace gestalt::kernels_cpu {
namespace {

class RotaryTable : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.rotary_table";

  explicit RotaryTable(Plan plan) : team_(plan.host()), p_(plan) {}

  void run(Call call) const {
    const View positions = call.in(0), table = call.out(0);
    const int64_t tokens = positions.dim(0);
    const In<int64_t> in(positions);
    int64_t longest = 0;
    for (int64_t t = 0; t < tokens; ++t) longest = std::max(longest, in.one(t * positions.stride(0)) + 1);
    const bool beyond = longest > p_.original_max;
    const auto& frequencies = p_.kind == p_.kLongrope && beyond ? p_.long_frequencies : p_.frequencies;
    double grown = 0;
    if (p_.kind == p_.kDynamic && beyond) {
      const double ratio = static_cast<double>(longest) / static_cast<double>(p_.original_max);
      const double d = 2 * static_cast<double>(p_.half);
      grown = p_.half == 1 ? p_.theta : p_.theta * std::pow(p_.factor * ratio - (p_.factor - 1), d / (d - 2));
    }
    team_(tokens, 1 + 256 / p_.half, [&](int64_t begin, int64_t end) {
      const Out<double> out(table);
      for (int64_t t = begin; t < end; ++t) {
        const auto position = static_cast<double>(in.one(t * positions.stride(0)));
        const int64_t row = t * table.stride(0);
        for (int64_t i = 0; i < p_.half; ++i) {
          const double f = grown > 0 ? p_.frequency(grown, i) : frequencies[static_cast<size_t>(i)];
          out.one(row + i * table.stride(1), p_.attention_factor * std::cos(position * f));
          out.one(row + (p_.half + i) * table.stride(1), p_.attention_factor * std::sin(position * f));
        }
      }
    });
  }

 private:
  Parallel team_;
  RotaryTablePlan p_;
};
GESTALT_KERNEL(RotaryTable);

}  // namespace
}  // namespace gestalt::kernels_cpu
