#include <cmath>
#include <vector>

#include "gestalt/op_plans/rotary.hpp"
#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/loops.h"

namespace gestalt::kernels_cpu {
namespace {

class Rotary : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.rotary";

  explicit Rotary(Plan plan)
      : slots_(plan.host()), p_(plan) {
    const View x = plan.in(0);
    for (int64_t i = 0; i < p_.dims / 2; ++i)
      turns_.push_back(p_.sense * std::pow(p_.theta, -2.0 * static_cast<double>(i) / static_cast<double>(p_.dims)) /
                       6.283185307179586477);
    plan.workspace(static_cast<uint64_t>(slots_.count() * (p_.dims + 2 * x.dim(2)) * (x.is(kF64) ? 8 : 4)));
    run_ = for_compute_type(x.dtype(), &Rotary::run_as<float>, &Rotary::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), y = call.out(0);
    const View by = call.in(p_.by_table ? 2 : 1);
    const int64_t tokens = x.dim(0), heads = x.dim(1), size = x.dim(2), half = static_cast<int64_t>(turns_.size());
    C* scratch = static_cast<C*>(call.workspace());
    const auto rotation = loops<C>().rotation;
    slots_(tokens, row_grain(heads * size), [&](int64_t slot, int64_t begin, int64_t end) {
      C* cosine = scratch + slot * 2 * (half + size);
      C* sine = cosine + half;
      C* own = sine + half;
      for (int64_t t = begin; t < end; ++t) {
        if (p_.by_table) {
          for (int64_t i = 0; i < half; ++i) {
            cosine[i] = In<C>(by).one(t * by.stride(0) + i * by.stride(1));
            sine[i] = static_cast<C>(p_.sense) * In<C>(by).one(t * by.stride(0) + (half + i) * by.stride(1));
          }
        } else {
          rotation(In<double>(by).one(t * by.stride(0)), turns_.data(), cosine, sine, half);
        }
        for (int64_t head = 0; head < heads; ++head) {
          const C* from = In<C>(x).run(t * x.stride(0) + head * x.stride(1), x.stride(2), size, own);
          const int64_t at = t * y.stride(0) + head * y.stride(1);
          C* to = Out<C>(y).run(at, y.stride(2), size, own + size);
          turn(from, to, cosine, sine, half);
          if (to != from) std::copy(from + 2 * half, from + size, to + 2 * half);
          Out<C>(y).finish(to, at, y.stride(2), size);
        }
      }
    });
  }
  template <class C>
  void turn(const C* from, C* to, const C* cosine, const C* sine, int64_t half) const {
    const int64_t step = p_.interleaved ? 2 : 1, other = p_.interleaved ? 1 : half;
    for (int64_t i = 0; i < half; ++i) {
      const C a = from[i * step], b = from[i * step + other];
      to[i * step] = a * cosine[i] - b * sine[i];
      to[i * step + other] = a * sine[i] + b * cosine[i];
    }
  }

  Slots slots_;
  RotaryPlan p_;
  std::vector<double> turns_;  // per position, of each pair; negative for the inverse
  void (Rotary::*run_)(Call) const;
};
GESTALT_KERNEL(Rotary);

}  // namespace
}  // namespace gestalt::kernels_cpu
