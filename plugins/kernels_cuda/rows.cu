#include "plugins/kernels_cuda/rows.cuh"

// Ops on rows, the last dimension: softmax, logsumexp, cumsum, max, topk.
namespace gestalt::kernels_cuda {
namespace {

struct Softmax {
  static constexpr std::string_view name = "core.softmax";
  explicit Softmax(const Plan&) {}
  template <class C, int kGroup>
  __device__ void operator()(const Row<C, 2, kGroup>& row) const {
    Lse<C> lse;
    row.each([&](int64_t i) {
      C x[kChunk];
      row.load(0, i, x, -infinity<C>());
      lse.add(x);
    });
    lse = group_lse<kGroup>(lse);
    const C factor = C(1) / lse.sum;
    row.each([&](int64_t i) {
      C x[kChunk];
      row.load(0, i, x);
#pragma unroll
      for (int j = 0; j < kChunk; ++j) x[j] = exp_of(x[j] - lse.top) * factor;
      row.store(1, i, x);
    });
  }
};
struct SoftmaxBwd {
  static constexpr std::string_view name = "core.softmax_bwd";
  explicit SoftmaxBwd(const Plan&) {}
  template <class C, int kGroup>
  __device__ void operator()(const Row<C, 3, kGroup>& row) const {
    C dot = C(0);
    row.each([&](int64_t i) {
      C y[kChunk], dy[kChunk];
      row.load(0, i, y);
      row.load(1, i, dy);
#pragma unroll
      for (int j = 0; j < kChunk; ++j) dot += y[j] * dy[j];
    });
    dot = group_sum<kGroup>(dot);
    row.each([&](int64_t i) {
      C y[kChunk], dy[kChunk];
      row.load(0, i, y);
      row.load(1, i, dy);
#pragma unroll
      for (int j = 0; j < kChunk; ++j) y[j] *= dy[j] - dot;
      row.store(2, i, y);
    });
  }
};

// Sums in double; reverse: from the end. Each thread sums a chunk, the group adds what lies before it.
struct Cumsum {
  static constexpr std::string_view name = "core.cumsum";
  explicit Cumsum(const Plan& plan) : reverse(plan.attrs().boolean("reverse", false)) {}
  template <class C, int kGroup>
  __device__ void operator()(const Row<C, 2, kGroup>& row) const {
    const int64_t n = row.rows.n;
    double carry = 0;
    for (int64_t base = 0; base < n; base += kGroup * kChunk) {
      const int64_t i = base + row.lane * kChunk;
      const int count = i < n ? row.count(i) : 0;
      const int64_t first = reverse ? n - 1 - i : i;
      const int64_t step = reverse ? -row.rows.step[0] : row.rows.step[0];
      const int64_t to_step = reverse ? -row.rows.step[1] : row.rows.step[1];
      C x[kChunk] = {};
      if (count > 0) load_chunk(row.rows.sides.side[0], row.at[0] + first * row.rows.step[0], step, count, x);
      double sums[kChunk];
      double sum = 0;
#pragma unroll
      for (int j = 0; j < kChunk; ++j) sums[j] = sum += static_cast<double>(x[j]);
      double total;
      const double before = carry + exclusive<kGroup>(sum, row.lane, &total);
      carry += total;
#pragma unroll
      for (int j = 0; j < kChunk; ++j) x[j] = static_cast<C>(before + sums[j]);
      if (count > 0) store_chunk(row.rows.sides.side[1], row.at[1] + first * row.rows.step[1], to_step, count, x);
    }
  }
  // The sum over the lanes below this one; total: over all.
  template <int kGroup>
  static __device__ double exclusive(double own, int lane, double* total) {
    double sum = own;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const double below = __shfl_up_sync(0xffffffffu, sum, offset);
      if (lane % 32 >= offset) sum += below;
    }
    if constexpr (kGroup == 32) {
      *total = __shfl_sync(0xffffffffu, sum, 31);
      return sum - own;
    } else {
      __shared__ double warps[kGroup / 32];
      if (lane % 32 == 31) warps[lane / 32] = sum;
      __syncthreads();
      double before = 0;
      *total = 0;
      for (int i = 0; i < kGroup / 32; ++i) {
        if (i < lane / 32) before += warps[i];
        *total += warps[i];
      }
      __syncthreads();
      return before + (sum - own);
    }
  }
  bool reverse;
};

// The frame of a row kernel with kIn inputs of the shape of its output.
template <class Op, size_t kIn>
class RowMap : public ElementKernel {
 public:
  static constexpr std::string_view op = Op::name;

  explicit RowMap(Plan plan) : f_(plan) {
    need_rows(plan, plan.in(0), plan.num_in() > 1 ? "y" : "x");
    for (uint64_t i = 1; i < kIn; ++i) {
      need_like(plan, plan.in(i), "dy", plan.in(0));
      need_same_shape(plan, plan.in(i), "dy", plan.in(0));
    }
    run_ = for_compute_type(plan.in(0).dtype(), &RowMap::run_as<float>, &RowMap::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    constexpr int kAll = static_cast<int>(kIn) + 1;
    std::array<View, kAll> all;
    for (uint64_t i = 0; i < kIn; ++i) all[i] = call.in(i);
    all[kIn] = call.out(0);
    each_row<C, kAll>(call, op, make_rows<kAll>(call.out(0), all), f_);
  }

  Op f_;
  void (RowMap::*run_)(Call) const;
};
GESTALT_KERNEL(RowMap<Softmax, 1>);
GESTALT_KERNEL(RowMap<SoftmaxBwd, 2>);
GESTALT_KERNEL(RowMap<Cumsum, 1>);

// y = log sum exp of each row, in f32 (f64).
struct LogsumexpRow {
  template <class C, int kGroup>
  __device__ void operator()(const Row<C, 2, kGroup>& row) const {
    Lse<C> lse;
    row.each([&](int64_t i) {
      C x[kChunk];
      row.load(0, i, x, -infinity<C>());
      lse.add(x);
    });
    row.put(1, group_lse<kGroup>(lse).value());
  }
};
class Logsumexp : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.logsumexp";

  explicit Logsumexp(Plan plan) {
    need_rows(plan, plan.in(0), "x");
    run_ = for_compute_type(plan.in(0).dtype(), &Logsumexp::run_as<float>, &Logsumexp::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    each_row<C, 2>(call, op, make_rows<2>(call.in(0), {call.in(0), call.out(0)}), LogsumexpRow());
  }

  void (Logsumexp::*run_)(Call) const;
};
GESTALT_KERNEL(Logsumexp);

// dx = dy exp(x - y)
struct LogsumexpBwdRow {
  template <class C, int kGroup>
  __device__ void operator()(const Row<C, 4, kGroup>& row) const {
    const C y = row.one(1), dy = row.one(2);
    row.each([&](int64_t i) {
      C x[kChunk];
      row.load(0, i, x);
#pragma unroll
      for (int j = 0; j < kChunk; ++j) x[j] = dy * exp_of(x[j] - y);
      row.store(3, i, x);
    });
  }
};
class LogsumexpBwd : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.logsumexp_bwd";

  explicit LogsumexpBwd(Plan plan) {
    need_rows(plan, plan.in(0), "x");
    need_statistics(plan, plan.in(0), plan.in(1), "y");
    need_statistics(plan, plan.in(0), plan.in(2), "dy");
    run_ = for_compute_type(plan.in(0).dtype(), &LogsumexpBwd::run_as<float>, &LogsumexpBwd::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    each_row<C, 4>(call, op, make_rows<4>(call.in(0), {call.in(0), call.in(1), call.in(2), call.out(0)}),
                   LogsumexpBwdRow());
  }

  void (LogsumexpBwd::*run_)(Call) const;
};
GESTALT_KERNEL(LogsumexpBwd);

// An element of a row in the order of its size: the larger first, of equal ones the first, NaN before all. Index -1:
// none, which comes last.
template <class C>
struct Ranked {
  C value = C(0);
  int64_t index = -1;

  __device__ bool before(const Ranked& other) const {
    if (index < 0 || other.index < 0) return index >= 0;
    const bool nan = value != value, other_nan = other.value != other.value;
    if (nan || other_nan) return nan && other_nan ? index < other.index : nan;
    return value > other.value || (value == other.value && index < other.index);
  }
  __device__ Ranked exchanged(int offset) const {
    Ranked other;
    other.value = __shfl_xor_sync(0xffffffffu, value, offset);
    other.index = __shfl_xor_sync(0xffffffffu, index, offset);
    return other;
  }
};
struct First {
  template <class C>
  __device__ Ranked<C> operator()(const Ranked<C>& a, const Ranked<C>& b) const {
    return b.before(a) ? b : a;
  }
};

// The k first in order, found one after the other. Sides: x, values, indices; indices alone where there are no values.
template <bool kValues>
struct LargestRow {
  int64_t k;
  template <class C, int kAll, int kGroup>
  __device__ void operator()(const Row<C, kAll, kGroup>& row) const {
    Ranked<C> last;
    for (int64_t found = 0; found < k; ++found) {
      Ranked<C> best;
      row.each([&](int64_t i) {
        C x[kChunk];
        row.load(0, i, x);
        const int count = row.count(i);
#pragma unroll
        for (int j = 0; j < kChunk; ++j) {
          if (j >= count) continue;
          Ranked<C> one;
          one.value = x[j];
          one.index = i + j;
          if ((last.index < 0 || last.before(one)) && one.before(best)) best = one;
        }
      });
      last = group_reduce<kGroup>(best, First());
      if (row.lane == 0) {
        if constexpr (kValues) store_one<C>(row.rows.sides.side[1], row.at[1] + found * row.rows.step[1], last.value);
        store_one<int64_t>(row.rows.sides.side[kAll - 1], row.at[kAll - 1] + found * row.rows.step[kAll - 1],
                           last.index);
      }
    }
  }
};

class Max : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.max";

  explicit Max(Plan plan) {
    need_filled(plan);
    run_ = for_compute_type(plan.in(0).dtype(), &Max::run_as<float>, &Max::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }
  static void need_filled(const Plan& plan) {
    need_rows(plan, plan.in(0), "x");
    if (plan.in(0).dim(-1) < 1) throw InvalidArgument(place(plan) + "x: empty rows, got " + describe(plan.in(0)));
  }

 private:
  template <class C>
  void run_as(Call call) const {
    each_row<C, 3>(call, op, make_rows<3>(call.in(0), {call.in(0), call.out(0), call.out(1)}), LargestRow<true>{1});
  }

  void (Max::*run_)(Call) const;
};
GESTALT_KERNEL(Max);

class Argmax : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.argmax";

  explicit Argmax(Plan plan) {
    Max::need_filled(plan);
    run_ = for_compute_type(plan.in(0).dtype(), &Argmax::run_as<float>, &Argmax::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    each_row<C, 2>(call, op, make_rows<2>(call.in(0), {call.in(0), call.out(0)}), LargestRow<false>{1});
  }

  void (Argmax::*run_)(Call) const;
};
GESTALT_KERNEL(Argmax);

class Topk : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.topk";

  explicit Topk(Plan plan) : k_(plan.attrs().i64("k")) {
    need_rows(plan, plan.in(0), "x");
    if (k_ < 1 || k_ > plan.in(0).dim(-1))
      throw InvalidArgument(place(plan) + "k: got " + std::to_string(k_) + ", expected 1 to " +
                            std::to_string(plan.in(0).dim(-1)));
    run_ = for_compute_type(plan.in(0).dtype(), &Topk::run_as<float>, &Topk::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    each_row<C, 3>(call, op, make_rows<3>(call.in(0), {call.in(0), call.out(0), call.out(1)}), LargestRow<true>{k_});
  }

  int64_t k_;
  void (Topk::*run_)(Call) const;
};
GESTALT_KERNEL(Topk);

// dx is 0 but for dx[row, index[row, i]] += dy[row, i]. Every element looks for the indices that name it.
struct TopkBwdRow {
  int64_t k;
  template <class C, int kGroup>
  __device__ void operator()(const Row<C, 3, kGroup>& row) const {
    row.each([&](int64_t i) {
      C sum[kChunk] = {};
      for (int64_t found = 0; found < k; ++found) {
        const int64_t at = load_one<int64_t>(row.rows.sides.side[0], row.at[0] + found * row.rows.step[0]) - i;
        if (at < 0 || at >= kChunk) continue;
        const C dy = load_one<C>(row.rows.sides.side[1], row.at[1] + found * row.rows.step[1]);
#pragma unroll
        for (int j = 0; j < kChunk; ++j)
          if (j == at) sum[j] += dy;
      }
      row.store(2, i, sum);
    });
  }
};
class TopkBwd : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.topk_bwd";

  explicit TopkBwd(Plan plan) {
    need_dtype(plan, plan.in(0), "index", {kI32});
    need_rows(plan, plan.in(1), "dy");
    need_same_shape(plan, plan.in(0), "index", plan.in(1));
    run_ = for_compute_type(plan.in(1).dtype(), &TopkBwd::run_as<float>, &TopkBwd::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    each_row<C, 3>(call, op, make_rows<3>(call.out(0), {call.in(0), call.in(1), call.out(0)}),
                   TopkBwdRow{call.in(1).dim(-1)});
  }

  void (TopkBwd::*run_)(Call) const;
};
GESTALT_KERNEL(TopkBwd);

}  // namespace
}  // namespace gestalt::kernels_cuda
