#include <algorithm>
#include <cmath>

#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/norm_rows.h"

// Ops on rows, the last dimension: softmax, logsumexp, max, topk, cumsum. Every row is read once into an array.
namespace gestalt::kernels_cpu {
namespace {

void need_rows(const Plan& plan, View x, std::string_view name) {
  need_float(plan, x, name);
  if (x.ndim() < 1) throw InvalidArgument(place(plan) + std::string(name) + ": no dimension, got " + describe(x));
}

// Offset of row r of a tensor with rows, or of element r of one that has one number a row.
int64_t row_at(View x, int64_t r) { return offset_of(x, x.ndim() - 1, r); }
int64_t one_at(View x, int64_t r) { return offset_of(x, x.ndim(), r); }

// The frame of a row kernel: Op has run_row<C>(in, out arrays, n).
template <class Op, size_t kIn>
class RowMap : public CpuKernel {
 public:
  static constexpr std::string_view op = Op::name;

  explicit RowMap(Plan plan) : slots_(plan.host()), f_(plan), planned_(plan.in(0).ndim() < 1 ? 0 : plan.in(0).dim(-1)) {
    need_rows(plan, plan.in(0), plan.num_in() > 1 ? "y" : "x");
    for (uint64_t i = 1; i < kIn; ++i) {
      need_like(plan, plan.in(i), "dy", plan.in(0));
      need_same_shape(plan, plan.in(i), "dy", plan.in(0));
    }
    plan_norm_workspace(plan, slots_, kIn + 1);
    run_ = for_compute_type(plan.in(0).dtype(), &RowMap::run_as<float>, &RowMap::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View y = call.out(0);
    const int64_t n = y.dim(-1);
    slots_(num_rows(y), row_grain(n), [&](int64_t slot, int64_t begin, int64_t end) {
      C* own = static_cast<C*>(call.workspace()) + slot * static_cast<int64_t>(kIn + 1) * planned_;
      for (int64_t row = begin; row < end; ++row) {
        std::array<const C*, kIn> in;
        for (size_t i = 0; i < kIn; ++i) {
          const View x = call.in(i);
          in[i] = In<C>(x).run(row_at(x, row), x.stride(-1), n, own + static_cast<int64_t>(i) * planned_);
        }
        C* to = Out<C>(y).run(row_at(y, row), y.stride(-1), n, own + static_cast<int64_t>(kIn) * planned_);
        f_.row(in, to, n);
        Out<C>(y).finish(to, row_at(y, row), y.stride(-1), n);
      }
    });
  }

  Slots slots_;
  Op f_;
  int64_t planned_;
  void (RowMap::*run_)(Call) const;
};

struct Softmax {
  static constexpr std::string_view name = "core.softmax";
  explicit Softmax(const Plan&) {}
  template <class C>
  void row(const std::array<const C*, 1>& in, C* y, int64_t n) const {
    const C top = loops<C>().max(in[0], n);
    const C sum = loops<C>().exp_shift_sum(in[0], C(1), top, y, n);
    loops<C>().scale(y, C(1) / sum, y, n);
  }
};
struct SoftmaxBwd {
  static constexpr std::string_view name = "core.softmax_bwd";
  explicit SoftmaxBwd(const Plan&) {}
  template <class C>
  void row(const std::array<const C*, 2>& in, C* dx, int64_t n) const {
    loops<C>().score_grad(in[0], in[1], loops<C>().dot(in[0], in[1], n), C(1), dx, n);
  }
};
// Sums in double; reverse: from the end.
struct Cumsum {
  static constexpr std::string_view name = "core.cumsum";
  explicit Cumsum(const Plan& plan) : reverse(plan.attrs().boolean("reverse", false)) {}
  template <class C>
  void row(const std::array<const C*, 1>& in, C* y, int64_t n) const {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = reverse ? n - 1 - i : i;
      sum += static_cast<double>(in[0][at]);
      y[at] = static_cast<C>(sum);
    }
  }
  bool reverse;
};
GESTALT_KERNEL(RowMap<Softmax, 1>);
GESTALT_KERNEL(RowMap<SoftmaxBwd, 2>);
GESTALT_KERNEL(RowMap<Cumsum, 1>);

// y = log sum exp of each row, in f32 (f64).
class Logsumexp : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.logsumexp";

  explicit Logsumexp(Plan plan) : slots_(plan.host()), planned_(plan.in(0).ndim() < 1 ? 0 : plan.in(0).dim(-1)) {
    need_rows(plan, plan.in(0), "x");
    plan_norm_workspace(plan, slots_, 1);
    run_ = for_compute_type(plan.in(0).dtype(), &Logsumexp::run_as<float>, &Logsumexp::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), y = call.out(0);
    const int64_t n = x.dim(-1);
    slots_(num_rows(x), row_grain(n), [&](int64_t slot, int64_t begin, int64_t end) {
      C* own = static_cast<C*>(call.workspace()) + slot * planned_;
      for (int64_t row = begin; row < end; ++row)
        Out<C>(y).one(one_at(y, row), loops<C>().logsumexp(In<C>(x).run(row_at(x, row), x.stride(-1), n, own), n));
    });
  }

  Slots slots_;
  int64_t planned_;
  void (Logsumexp::*run_)(Call) const;
};
GESTALT_KERNEL(Logsumexp);

// dx = dy exp(x - y)
class LogsumexpBwd : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.logsumexp_bwd";

  explicit LogsumexpBwd(Plan plan) : slots_(plan.host()), planned_(plan.in(0).ndim() < 1 ? 0 : plan.in(0).dim(-1)) {
    need_rows(plan, plan.in(0), "x");
    need_statistics(plan, plan.in(0), plan.in(1), "y");
    need_statistics(plan, plan.in(0), plan.in(2), "dy");
    plan_norm_workspace(plan, slots_, 2);
    run_ = for_compute_type(plan.in(0).dtype(), &LogsumexpBwd::run_as<float>, &LogsumexpBwd::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0), y = call.in(1), dy = call.in(2), dx = call.out(0);
    const int64_t n = x.dim(-1);
    slots_(num_rows(x), row_grain(n), [&](int64_t slot, int64_t begin, int64_t end) {
      C* own = static_cast<C*>(call.workspace()) + slot * 2 * planned_;
      for (int64_t row = begin; row < end; ++row) {
        const C* from = In<C>(x).run(row_at(x, row), x.stride(-1), n, own);
        C* to = Out<C>(dx).run(row_at(dx, row), dx.stride(-1), n, own + planned_);
        loops<C>().softmax_grad(from, In<C>(y).one(one_at(y, row)), In<C>(dy).one(one_at(dy, row)), to, n);
        Out<C>(dx).finish(to, row_at(dx, row), dx.stride(-1), n);
      }
    });
  }

  Slots slots_;
  int64_t planned_;
  void (LogsumexpBwd::*run_)(Call) const;
};
GESTALT_KERNEL(LogsumexpBwd);

// The largest elements of a row in falling order; of equal ones the first. Workspace: a row and its order.
class Largest : public CpuKernel {
 public:
  explicit Largest(Plan plan) : slots_(plan.host()), planned_(plan.in(0).ndim() < 1 ? 0 : plan.in(0).dim(-1)) {
    need_rows(plan, plan.in(0), "x");
    slot_bytes_ = planned_ * 16;
    plan.workspace(static_cast<uint64_t>(slots_.count() * slot_bytes_));
    is_double_ = plan.in(0).is(kF64);
  }

 protected:
  // Calls f(row, values, order) with the first k of order sorted.
  template <class F>
  void each(Call call, int64_t k, const F& f) const {
    if (is_double_)
      each_as<double>(call, k, f);
    else
      each_as<float>(call, k, f);
  }
  void need_one(const Plan& plan) const {
    if (planned_ < 1) throw InvalidArgument(place(plan) + "x: empty rows, got " + describe(plan.in(0)));
  }

 private:
  template <class C, class F>
  void each_as(Call call, int64_t k, const F& f) const {
    const View x = call.in(0);
    const int64_t n = x.dim(-1);
    slots_(num_rows(x), row_grain(4 * n), [&](int64_t slot, int64_t begin, int64_t end) {
      char* own = static_cast<char*>(call.workspace()) + slot * slot_bytes_;
      int64_t* order = reinterpret_cast<int64_t*>(own + planned_ * 8);
      for (int64_t row = begin; row < end; ++row) {
        const C* values = In<C>(x).run(row_at(x, row), x.stride(-1), n, reinterpret_cast<C*>(own));
        for (int64_t i = 0; i < n; ++i) order[i] = i;
        // NaN counts as the largest: the order must be one.
        std::partial_sort(order, order + std::min(k, n), order + n, [values](int64_t a, int64_t b) {
          const bool a_nan = std::isnan(values[a]), b_nan = std::isnan(values[b]);
          if (a_nan || b_nan) return a_nan && b_nan ? a < b : a_nan;
          return values[a] > values[b] || (values[a] == values[b] && a < b);
        });
        f(row, values, order);
      }
    });
  }

  Slots slots_;
  int64_t planned_, slot_bytes_;
  bool is_double_;
};

class Max : public Largest {
 public:
  static constexpr std::string_view op = "core.max";
  explicit Max(Plan plan) : Largest(plan) { need_one(plan); }
  void run(Call call) const {
    each(call, 1, [&]<class C>(int64_t row, const C* values, const int64_t* order) {
      Out<C>(call.out(0)).one(one_at(call.out(0), row), values[order[0]]);
      Out<int64_t>(call.out(1)).one(one_at(call.out(1), row), order[0]);
    });
  }
};
GESTALT_KERNEL(Max);

class Argmax : public Largest {
 public:
  static constexpr std::string_view op = "core.argmax";
  explicit Argmax(Plan plan) : Largest(plan) { need_one(plan); }
  void run(Call call) const {
    each(call, 1, [&]<class C>(int64_t row, const C*, const int64_t* order) {
      Out<int64_t>(call.out(0)).one(one_at(call.out(0), row), order[0]);
    });
  }
};
GESTALT_KERNEL(Argmax);

class Topk : public Largest {
 public:
  static constexpr std::string_view op = "core.topk";
  explicit Topk(Plan plan) : Largest(plan), k_(plan.attrs().i64("k")) {
    if (k_ < 1 || k_ > plan.in(0).dim(-1))
      throw InvalidArgument(place(plan) + "k: got " + std::to_string(k_) + ", expected 1 to " +
                            std::to_string(plan.in(0).dim(-1)));
  }
  void run(Call call) const {
    const View y = call.out(0), index = call.out(1);
    each(call, k_, [&]<class C>(int64_t row, const C* values, const int64_t* order) {
      for (int64_t i = 0; i < k_; ++i) {
        Out<C>(y).one(row_at(y, row) + i * y.stride(-1), values[order[i]]);
        Out<int64_t>(index).one(row_at(index, row) + i * index.stride(-1), order[i]);
      }
    });
  }

 private:
  int64_t k_;
};
GESTALT_KERNEL(Topk);

// dx is 0 but for dx[row, index[row, i]] += dy[row, i].
class TopkBwd : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.topk_bwd";

  explicit TopkBwd(Plan plan) : slots_(plan.host()), planned_(plan.out(0).ndim() < 1 ? 0 : plan.out(0).dim(-1)) {
    need_dtype(plan, plan.in(0), "index", {kI32});
    need_rows(plan, plan.in(1), "dy");
    need_same_shape(plan, plan.in(0), "index", plan.in(1));
    plan.workspace(static_cast<uint64_t>(slots_.count() * planned_ * 8));
    run_ = for_compute_type(plan.in(1).dtype(), &TopkBwd::run_as<float>, &TopkBwd::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View index = call.in(0), dy = call.in(1), dx = call.out(0);
    const int64_t n = dx.dim(-1), k = dy.dim(-1), rows = num_rows(dx);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < k; ++i)
        if (const int64_t at = In<int64_t>(index).one(row_at(index, row) + i * index.stride(-1)); at < 0 || at >= n)
          throw InvalidArgument("[core.topk_bwd] index: out of range, got " + std::to_string(at) + " in row " +
                                std::to_string(row) + ", expected 0 to " + std::to_string(n - 1));
    slots_(rows, row_grain(n), [&](int64_t slot, int64_t begin, int64_t end) {
      C* sums = reinterpret_cast<C*>(static_cast<char*>(call.workspace()) + slot * planned_ * 8);
      for (int64_t row = begin; row < end; ++row) {
        std::fill(sums, sums + n, C(0));
        for (int64_t i = 0; i < k; ++i)
          sums[In<int64_t>(index).one(row_at(index, row) + i * index.stride(-1))] +=
              In<C>(dy).one(row_at(dy, row) + i * dy.stride(-1));
        Out<C>(dx).finish(sums, row_at(dx, row), dx.stride(-1), n);
      }
    });
  }

  Slots slots_;
  int64_t planned_;
  void (TopkBwd::*run_)(Call) const;
};
GESTALT_KERNEL(TopkBwd);

// Whether every element is a number: not infinite and not NaN.
class IsFinite : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.is_finite";

  explicit IsFinite(Plan plan) : team_(plan.host()) {
    need_float(plan, plan.in(0), "x");
    plan.workspace(static_cast<uint64_t>(num_runs(plan.in(0).numel())));
    run_ = for_compute_type(plan.in(0).dtype(), &IsFinite::run_as<float>, &IsFinite::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  static constexpr int64_t kRun = 8 * kBlock;
  static int64_t num_runs(int64_t n) { return (n + kRun - 1) / kRun; }

  template <class C>
  void run_as(Call call) const {
    const View x = call.in(0);
    const Loop<1> loop = make_loop<1>(x, {x});
    char* finite = static_cast<char*>(call.workspace());
    team_(num_runs(loop.numel), 2, [&](int64_t begin, int64_t end) {
      C scratch[kBlock];
      for (int64_t run = begin; run < end; ++run) {
        bool all = true;
        for_runs(loop, run * kRun, std::min(loop.numel, (run + 1) * kRun), kBlock,
                 [&](const std::array<int64_t, 1>& at, int64_t n) {
                   const C* values = In<C>(x).run(at[0], loop.inner_stride()[0], n, scratch);
                   for (int64_t i = 0; i < n; ++i) all &= std::isfinite(values[i]);
                 });
        finite[run] = all;
      }
    });
    const int64_t runs = num_runs(loop.numel);
    Out<int64_t>(call.out(0)).one(0, std::all_of(finite, finite + runs, [](char f) { return f != 0; }));
  }

  Parallel team_;
  void (IsFinite::*run_)(Call) const;
};
GESTALT_KERNEL(IsFinite);

}  // namespace
}  // namespace gestalt::kernels_cpu
