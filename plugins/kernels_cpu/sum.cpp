#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/loops.h"
#include "plugins/kernels_cpu/strided.h"

namespace gestalt::kernels_cpu {
namespace {

struct SumOp {
  static constexpr std::string_view name = "core.sum";
  static constexpr bool mean = false;
};
struct MeanOp {
  static constexpr std::string_view name = "core.mean";
  static constexpr bool mean = true;
};

// Sums or means over any set of dimensions, in double. Two inner forms: where the last dimension stays, whole rows are
// added to a block of sums; where it is reduced, each output element is a sum of rows.
template <class Op>
class Sum : public CpuKernel {
 public:
  static constexpr std::string_view op = Op::name;
  static constexpr uint64_t flags = CpuKernel::accumulating;

  // dims: those to sum over, all where empty.
  explicit Sum(Plan plan) : team_(plan.host()) {
    const View x = plan.in(0);
    need_float(plan, x, "x");
    need_like(plan, plan.out(0), "y", x);
    if (plan.attrs().i64_list("dims").empty()) reduced_.fill(true);
    for (int64_t dim : plan.attrs().i64_list("dims")) {
      if (dim < -x.ndim() || dim >= x.ndim())
        throw InvalidArgument(place(plan) + "dims: out of range, got " + std::to_string(dim) + " for x " + describe(x));
      reduced_[static_cast<size_t>(dim < 0 ? dim + x.ndim() : dim)] = true;
    }
    run_ = for_compute_type(x.dtype(), &Sum::run_as<float>, &Sum::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), y = call.out(0);
    const bool kept_dims = y.ndim() == x.ndim();
    Loop<2> kept;   // offsets in x and y
    Loop<1> inner;  // offsets in x
    int64_t row = 0, row_stride_x = 0, row_stride_y = 0;
    int y_dim = 0;
    for (int d = 0; d < x.ndim(); ++d) {
      const bool reduced = reduced_[static_cast<size_t>(d)];
      const int own = kept_dims ? d : y_dim;
      if (!reduced) ++y_dim;
      if (reduced) {
        inner.append(x.dim(d), {x.stride(d)});
      } else if (d == x.ndim() - 1) {
        row = x.dim(d);
        row_stride_x = x.stride(d);
        row_stride_y = y.stride(own);
      } else {
        kept.append(x.dim(d), {x.stride(d), y.stride(own)});
      }
    }
    kept.close();
    inner.close();
    const bool last_stays = x.ndim() > 0 && !reduced_[static_cast<size_t>(x.ndim() - 1)];
    if (last_stays)
      add_rows<C>(call, kept, inner, row, row_stride_x, row_stride_y);
    else
      sum_rows<C>(call, kept, inner);
  }

  template <class C>
  void add_rows(Call call, const Loop<2>& kept, const Loop<1>& inner, int64_t row, int64_t stride_x,
                int64_t stride_y) const {
    constexpr int64_t kWidth = 128;
    const In<C> x(call.in(0));
    const Out<C> y(call.out(0), call.accumulate(0));
    const int64_t blocks = (row + kWidth - 1) / kWidth;
    team_(kept.numel * blocks, 8192 / std::max<int64_t>(inner.numel, 1) / kWidth + 1, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t first = item % blocks * kWidth, n = std::min(kWidth, row - first);
        for_runs(kept, item / blocks, item / blocks + 1, 1, [&](const std::array<int64_t, 2>& at, int64_t) {
          double total[kWidth] = {};
          C scratch[kWidth], result[kWidth];
          const auto add = loops<C>().add_to_double;
          for_runs(inner, 0, inner.numel, 1, [&](const std::array<int64_t, 1>& from, int64_t) {
            add(x.run(at[0] + from[0] + first * stride_x, stride_x, n, scratch), total, n);
          });
          if (Op::mean)
            for (int64_t i = 0; i < n; ++i) total[i] /= static_cast<double>(inner.numel);
          for (int64_t i = 0; i < n; ++i) result[i] = static_cast<C>(total[i]);
          y.finish(result, at[1] + first * stride_y, stride_y, n);
        });
      }
    });
  }

  template <class C>
  void sum_rows(Call call, const Loop<2>& kept, const Loop<1>& inner) const {
    const In<C> x(call.in(0));
    const Out<C> y(call.out(0), call.accumulate(0));
    const auto sum = loops<C>().sum;
    team_(kept.numel, row_grain(inner.numel), [&](int64_t begin, int64_t end) {
      for_runs(kept, begin, end, 1, [&](const std::array<int64_t, 2>& at, int64_t) {
        double total = 0;
        C scratch[kBlock];
        for_runs(inner, 0, inner.numel, kBlock, [&](const std::array<int64_t, 1>& from, int64_t n) {
          total += sum(x.run(at[0] + from[0], inner.inner_stride()[0], n, scratch), n);
        });
        y.one(at[1], static_cast<C>(Op::mean ? total / static_cast<double>(inner.numel) : total));
      });
    });
  }

  Parallel team_;
  std::array<bool, GESTALT_MAX_NDIM> reduced_{};
  void (Sum::*run_)(Call) const;
};
GESTALT_KERNEL(Sum<SumOp>);
GESTALT_KERNEL(Sum<MeanOp>);

// Sums of blocks of fixed size, in double, added in order.
class SumSquares : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.sum_squares";

  explicit SumSquares(Plan plan) : team_(plan.host()) {
    need_float(plan, plan.in(0), "x");
    plan.workspace(static_cast<uint64_t>(num_blocks(plan.in(0).numel())) * sizeof(double));
    run_ = for_compute_type(plan.in(0).dtype(), &SumSquares::run_as<float>, &SumSquares::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  static constexpr int64_t kRun = 8 * kBlock;
  static int64_t num_blocks(int64_t n) { return (n + kRun - 1) / kRun; }

  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0);
    const Loop<1> loop = make_loop<1>(x, {x});
    const In<C> in(x);
    double* partial = static_cast<double*>(call.workspace());
    const auto sum_squares = loops<C>().sum_squares;
    team_(num_blocks(loop.numel), 2, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        double total = 0;
        C scratch[kBlock];
        for_runs(loop, block * kRun, std::min(loop.numel, (block + 1) * kRun), kBlock,
                 [&](const std::array<int64_t, 1>& at, int64_t n) {
                   total += sum_squares(in.run(at[0], loop.inner_stride()[0], n, scratch), n);
                 });
        partial[block] = total;
      }
    });
    double total = 0;
    for (int64_t block = 0; block < num_blocks(loop.numel); ++block) total += partial[block];
    const View y = call.out(0);
    Out<double>(y).one(0, total);
  }

  Parallel team_;
  void (SumSquares::*run_)(Call) const;
};
GESTALT_KERNEL(SumSquares);

}  // namespace
}  // namespace gestalt::kernels_cpu
