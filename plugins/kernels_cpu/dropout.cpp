#include "gestalt/philox.h"
#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/loops.h"

namespace gestalt::kernels_cpu {
namespace {

// y = x / (1 - p) where a uniform number is at least p, else 0. The number is a function of (seed, step, sample,
// position, use, column0 + column), see gestalt/philox.h, so the same op on dy is the gradient.
class Dropout : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.dropout";

  explicit Dropout(Plan plan)
      : team_(plan.host()),
        p_(plan.attrs().f64("p")),
        use_(plan.attrs().i64("use")),
        column0_(plan.attrs().i64("column0", 0)) {
    const View x = plan.in(0), keys = plan.in(1), seed = plan.in(2);
    need_float(plan, x, "x");
    need_ndim(plan, x, "x", 2);
    need_dtype(plan, keys, "keys", {kI32});
    need_ndim(plan, keys, "keys", 2);
    need_dim(plan, keys, "keys", 0, x.dim(0));
    need_dim(plan, keys, "keys", 1, 2);
    need_dtype(plan, seed, "seed", {kI32});
    need_ndim(plan, seed, "seed", 1);
    need_dim(plan, seed, "seed", 0, 4);
    if (!(p_ >= 0 && p_ < 1))
      throw InvalidArgument(place(plan) + "p: got " + std::to_string(p_) + ", expected 0 <= p < 1");
    if (use_ < 0 || use_ >= 4096)
      throw InvalidArgument(place(plan) + "use: got " + std::to_string(use_) + ", expected 0 to 4095");
    if (column0_ < 0 || column0_ + x.dim(1) > int64_t{1} << 22)
      throw InvalidArgument(place(plan) + "column0: got " + std::to_string(column0_) + ", expected 0 to " +
                            std::to_string((int64_t{1} << 22) - x.dim(1)));
    run_ = for_compute_type(x.dtype(), &Dropout::run_as<float>, &Dropout::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  static uint32_t word(View view, int64_t offset) { return static_cast<uint32_t>(view.data<int32_t>()[offset]); }

  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), keys = call.in(1), words = call.in(2), y = call.out(0);
    const auto wide = [&](int64_t i) {
      return word(words, i * words.stride(0)) | uint64_t{word(words, (i + 1) * words.stride(0))} << 32;
    };
    const uint64_t seed = wide(0), step = wide(2);
    const uint32_t threshold = philox_threshold(p_);
    const C factor = static_cast<C>(1 / (1 - p_));
    const int64_t width = x.dim(1);
    const uint32_t use = static_cast<uint32_t>(use_);
    const auto dropout = loops<C>().dropout;
    team_(x.dim(0), row_grain(2 * width), [&](int64_t begin, int64_t end) {
      C in[kBlock], out[kBlock];
      for (int64_t t = begin; t < end; ++t) {
        const uint32_t sample = word(keys, t * keys.stride(0));
        const uint32_t position = word(keys, t * keys.stride(0) + keys.stride(1));
        for (int64_t at = 0; at < width; at += kBlock) {
          const int64_t n = std::min(kBlock, width - at), to_at = t * y.stride(0) + at * y.stride(1);
          const C* from = In<C>(x).run(t * x.stride(0) + at * x.stride(1), x.stride(1), n, in);
          C* to = Out<C>(y).run(to_at, y.stride(1), n, out);
          // Columns up to the next multiple of 4, then whole counters.
          const uint32_t column = static_cast<uint32_t>(column0_ + at);
          const int64_t lead = std::min<int64_t>(n, (4 - column % 4) % 4);
          const PhiloxBlock block = philox_token(seed, step, sample, position, use, column / 4);
          for (int64_t i = 0; i < lead; ++i)
            to[i] = block.word[column % 4 + static_cast<uint32_t>(i)] >> 8 < threshold ? C(0) : from[i] * factor;
          dropout(from + lead, factor, threshold, seed ^ (step >> 32 << 32), static_cast<uint32_t>(step), sample,
                  position, use << 20 | (column + 3) / 4, to + lead, n - lead);
          Out<C>(y).finish(to, to_at, y.stride(1), n);
        }
      }
    });
  }

  Parallel team_;
  double p_;
  int64_t use_, column0_;
  void (Dropout::*run_)(Call) const;
};
GESTALT_KERNEL(Dropout);

}  // namespace
}  // namespace gestalt::kernels_cpu
