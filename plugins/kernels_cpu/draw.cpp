#include "gestalt/philox.h"
#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/elementwise.h"

// Random tensors: element i, counted row by row, is a function of (seed, step, use, i), see gestalt/philox.h.
namespace gestalt::kernels_cpu {
namespace {

// low + (high - low) u with u a multiple of 2^-24 in [0, 1).
struct Uniform {
  static constexpr std::string_view name = "core.uniform";
  static double offset(const Attrs& a) { return a.f64("low", 0); }
  static double factor(const Attrs& a) { return a.f64("high", 1) - a.f64("low", 0); }
  static double draw(uint32_t bits) { return static_cast<double>(philox_uniform(bits)); }
};
struct Normal {
  static constexpr std::string_view name = "core.normal";
  static double offset(const Attrs& a) { return a.f64("mean", 0); }
  static double factor(const Attrs& a) { return a.f64("std", 1); }
  static double draw(uint32_t bits) { return static_cast<double>(philox_normal_fixed(bits)) * 0x1p-28; }
};

template <class Op>
class Draw : public CpuKernel {
 public:
  static constexpr std::string_view op = Op::name;

  explicit Draw(Plan plan)
      : team_(plan.host()),
        offset_(Op::offset(plan.attrs())),
        factor_(Op::factor(plan.attrs())),
        use_(plan.attrs().i64("use")) {
    need_dtype(plan, plan.in(0), "seed", {kI32});
    need_ndim(plan, plan.in(0), "seed", 1);
    need_dim(plan, plan.in(0), "seed", 0, 4);
    need_float(plan, plan.out(0), "y");
    if (use_ < 0 || use_ >= int64_t{1} << 32)
      throw InvalidArgument(place(plan) + "use: got " + std::to_string(use_) + ", expected 0 to 4294967295");
  }
  void run(Call call) const {
    const View words = call.in(0), y = call.out(0);
    const auto word = [&](int64_t i) { return static_cast<uint32_t>(In<int64_t>(words).one(i * words.stride(0))); };
    const uint64_t seed = word(0) | uint64_t{word(1)} << 32, step = word(2) | uint64_t{word(3)} << 32;
    const Loop<1> loop = make_loop<1>(y, {y});
    const Out<double> out(y);
    team_((loop.numel + 3) / 4, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const PhiloxBlock bits = philox_tensor(seed, step, static_cast<uint32_t>(use_), static_cast<uint64_t>(block));
        int64_t i = 4 * block;
        for_runs(loop, i, std::min(loop.numel, i + 4), 1, [&](const std::array<int64_t, 1>& at, int64_t) {
          out.one(at[0], offset_ + factor_ * Op::draw(bits.word[i++ % 4]));
        });
      }
    });
  }

 private:
  Parallel team_;
  double offset_, factor_;
  int64_t use_;
};
GESTALT_KERNEL(Draw<Uniform>);
GESTALT_KERNEL(Draw<Normal>);

}  // namespace
}  // namespace gestalt::kernels_cpu
