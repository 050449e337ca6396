#include <cmath>
#include <vector>

#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/loops.h"

namespace gestalt::kernels_cpu {
namespace {

// Turns pair i of the first `dims` elements of each head by positions[t] theta^(-2i / dims) radians, or by row t of the
// table: dims/2 cosines, then dims/2 sines. A pair is (i, i + dims/2), or (2i, 2i + 1) where interleaved. inverse turns
// back: the gradient. The rest of a head is copied.
class Rotary : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.rotary";

  explicit Rotary(Plan plan)
      : slots_(plan.host()), interleaved_(plan.attrs().boolean("interleaved", false)), by_table_(plan.has_in(2)) {
    const View x = plan.in(0);
    need_float(plan, x, "x");
    need_ndim(plan, x, "x", 3);
    if (plan.has_in(1) == plan.has_in(2))
      throw InvalidArgument(place(plan) + "got " +
                            (plan.has_in(1) ? "positions and a table" : "no positions, no table") +
                            ", expected either");
    int64_t dims = plan.attrs().i64("dims", 0);
    if (plan.has_in(2)) {
      need_dtype(plan, plan.in(2), "table", {x.is(kF64) ? kF64 : kF32});
      need_ndim(plan, plan.in(2), "table", 2);
      need_dim(plan, plan.in(2), "table", 0, x.dim(0));
      dims = plan.in(2).dim(1);
    } else {
      need_index(plan, plan.in(1), "positions");
      need_ndim(plan, plan.in(1), "positions", 1);
      need_dim(plan, plan.in(1), "positions", 0, x.dim(0));
      if (dims == 0) dims = x.dim(2);
    }
    if (dims < 0 || dims % 2 != 0 || dims > x.dim(2))
      throw InvalidArgument(place(plan) + "dims: cannot be rotated in pairs, got " + std::to_string(dims) +
                            ", expected an even number up to " + std::to_string(x.dim(2)));
    const double theta = plan.attrs().f64("theta", 1e4);
    if (!(theta > 0)) throw InvalidArgument(place(plan) + "theta: got " + std::to_string(theta) + ", expected above 0");
    sense_ = plan.attrs().boolean("inverse", false) ? -1 : 1;
    for (int64_t i = 0; i < dims / 2; ++i)
      turns_.push_back(sense_ * std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(dims)) /
                       6.283185307179586477);
    plan.workspace(static_cast<uint64_t>(slots_.count() * (dims + 2 * x.dim(2)) * (x.is(kF64) ? 8 : 4)));
    run_ = for_compute_type(x.dtype(), &Rotary::run_as<float>, &Rotary::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), y = call.out(0);
    const View by = call.in(by_table_ ? 2 : 1);
    const int64_t tokens = x.dim(0), heads = x.dim(1), size = x.dim(2), half = static_cast<int64_t>(turns_.size());
    C* scratch = static_cast<C*>(call.workspace());
    const auto rotation = loops<C>().rotation;
    slots_(tokens, row_grain(heads * size), [&](int64_t slot, int64_t begin, int64_t end) {
      C* cosine = scratch + slot * 2 * (half + size);
      C* sine = cosine + half;
      C* own = sine + half;
      for (int64_t t = begin; t < end; ++t) {
        if (by_table_) {
          for (int64_t i = 0; i < half; ++i) {
            cosine[i] = In<C>(by).one(t * by.stride(0) + i * by.stride(1));
            sine[i] = static_cast<C>(sense_) * In<C>(by).one(t * by.stride(0) + (half + i) * by.stride(1));
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
    const int64_t step = interleaved_ ? 2 : 1, other = interleaved_ ? 1 : half;
    for (int64_t i = 0; i < half; ++i) {
      const C a = from[i * step], b = from[i * step + other];
      to[i * step] = a * cosine[i] - b * sine[i];
      to[i * step + other] = a * sine[i] + b * cosine[i];
    }
  }

  Slots slots_;
  bool interleaved_, by_table_;
  double sense_ = 1;
  std::vector<double> turns_;  // per position, of each pair; negative for the inverse
  void (Rotary::*run_)(Call) const;
};
GESTALT_KERNEL(Rotary);

}  // namespace
}  // namespace gestalt::kernels_cpu
