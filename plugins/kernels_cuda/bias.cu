#include <cmath>

#include "plugins/kernels_cuda/rows.cuh"

// Biases of attention by distance: bias[head, reach + key - query].
namespace gestalt::kernels_cuda {
namespace {

struct BiasView {
  Side side;
  int64_t head, step, heads, distances;
};
BiasView bias_view(View v) { return {side_of(v), v.stride(0), v.stride(1), v.dim(0), v.dim(1)}; }

// -slope |key - query| (Press and others, "Train short, test long", 2022). The slopes of a power of two of heads are
// 2^(-8 i / heads), i from 1; other numbers take those of the power below, then every second one of the power above.
__global__ void __launch_bounds__(kThreads) alibi(const BiasView bias, int64_t power) {
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (item >= bias.heads * bias.distances) return;
  const int64_t head = item / bias.distances, i = item % bias.distances;
  const double exponent = head < power ? 8.0 * static_cast<double>(head + 1) / static_cast<double>(power)
                                       : 4.0 * static_cast<double>(2 * (head - power) + 1) / static_cast<double>(power);
  const int64_t off = i - bias.distances / 2;
  store_one<double>(bias.side, head * bias.head + i * bias.step,
                    -exp2(-exponent) * static_cast<double>(off < 0 ? -off : off));
}

class Alibi : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.alibi";

  explicit Alibi(Plan plan) {
    need_float(plan, plan.out(0), "bias");
    need_ndim(plan, plan.out(0), "bias", 2);
  }
  void run(Call call) const {
    const View bias = call.out(0);
    if (bias.numel() == 0) return;
    int64_t power = 1;
    while (2 * power <= bias.dim(0)) power *= 2;
    alibi<<<blocks_for(bias.numel()), kThreads, 0, stream_of(call)>>>(bias_view(bias), power);
    check_launch(op);
  }
};
GESTALT_KERNEL(Alibi);

// T5's bias by distance (Raffel and others, 2020): table[bucket(key - query), head]. Half of the buckets are single
// distances; the others grow with the logarithm up to max_distance. Without bidirectional all keys ahead share bucket
// 0, else keys ahead have the upper half of the buckets.
struct Buckets {
  int64_t count, distances;
  int64_t own, exact;  // buckets of one direction, and those of single distances
  float growth;        // the logarithm of max_distance over exact
  bool both;

  Buckets(const Plan& plan, int64_t buckets, int64_t all) : count(buckets), distances(all) {
    both = plan.attrs().boolean("bidirectional", false);
    const int64_t far = plan.attrs().i64("max_distance", 128);
    own = both ? buckets / 2 : buckets;
    exact = own / 2;
    if (exact < 1 || far <= exact)
      throw InvalidArgument(place(plan) + "max_distance: got " + std::to_string(far) + " for " +
                            std::to_string(buckets) +
                            " buckets, expected more than the distances told apart, which must be some");
    growth = static_cast<float>(std::log(static_cast<double>(far) / static_cast<double>(exact)));
  }
  // The logarithm is rounded to f32, as those who trained such models computed it.
  __device__ int64_t of(int64_t i) const {
    const int64_t ahead = i - distances / 2;
    const int64_t gap = both ? (ahead < 0 ? -ahead : ahead) : (ahead < 0 ? -ahead : 0);
    int64_t bucket = gap;
    if (gap >= exact) {
      const float ratio = __fdiv_rn(static_cast<float>(gap), static_cast<float>(exact));
      const float grown = __fmul_rn(__fdiv_rn(static_cast<float>(log(static_cast<double>(ratio))), growth),
                                    static_cast<float>(own - exact));
      bucket = min(own - 1, exact + static_cast<int64_t>(grown));
    }
    return bucket + (both && ahead > 0 ? own : 0);
  }
};

__global__ void __launch_bounds__(kThreads)
    relative_bias(const Buckets buckets, const Side table, int64_t row, int64_t column, const BiasView bias) {
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (item >= bias.heads * bias.distances) return;
  const int64_t head = item / bias.distances, i = item % bias.distances;
  store_one<double>(bias.side, head * bias.head + i * bias.step,
                    load_one<double>(table, buckets.of(i) * row + head * column));
}

class RelativeBias : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.relative_bias";

  explicit RelativeBias(Plan plan) : buckets_(checked(plan)) {}
  void run(Call call) const {
    const View table = call.in(0), bias = call.out(0);
    if (bias.numel() == 0) return;
    relative_bias<<<blocks_for(bias.numel()), kThreads, 0, stream_of(call)>>>(buckets_, side_of(table), table.stride(0),
                                                                              table.stride(1), bias_view(bias));
    check_launch(op);
  }

 private:
  static Buckets checked(const Plan& plan) {
    const View table = plan.in(0), bias = plan.out(0);
    need_float(plan, table, "table");
    need_ndim(plan, table, "table", 2);
    need_like(plan, bias, "bias", table);
    need_ndim(plan, bias, "bias", 2);
    need_dim(plan, bias, "bias", 0, table.dim(1));
    return Buckets(plan, table.dim(0), bias.dim(1));
  }

  Buckets buckets_;
};
GESTALT_KERNEL(RelativeBias);

// A block sums the distances of one bucket and head.
__global__ void __launch_bounds__(kThreads)
    relative_bias_bwd(const Buckets buckets, const BiasView dbias, const Side dtable, int64_t row, int64_t column,
                      bool accumulate) {
  const int64_t head = blockIdx.x, bucket = blockIdx.y;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < dbias.distances; i += kThreads)
    if (buckets.of(i) == bucket) sum += load_one<double>(dbias.side, head * dbias.head + i * dbias.step);
  sum = group_sum<kThreads>(sum);
  if (threadIdx.x == 0) store_one<double>(dtable, bucket * row + head * column, sum, accumulate);
}

class RelativeBiasBwd : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.relative_bias_bwd";
  static constexpr uint64_t flags = ElementKernel::accumulating;

  explicit RelativeBiasBwd(Plan plan) : buckets_(checked(plan)) {}
  void run(Call call) const {
    const View dbias = call.in(0), dtable = call.out(0);
    if (dtable.numel() == 0) return;
    const dim3 grid(static_cast<unsigned>(dbias.dim(0)), static_cast<unsigned>(dtable.dim(0)));
    relative_bias_bwd<<<grid, kThreads, 0, stream_of(call)>>>(buckets_, bias_view(dbias), side_of(dtable),
                                                              dtable.stride(0), dtable.stride(1), call.accumulate(0));
    check_launch(op);
  }

 private:
  static Buckets checked(const Plan& plan) {
    const View dbias = plan.in(0), dtable = plan.out(0);
    need_float(plan, dbias, "dbias");
    need_ndim(plan, dbias, "dbias", 2);
    need_like(plan, dtable, "dtable", dbias);
    need_ndim(plan, dtable, "dtable", 2);
    need_dim(plan, dtable, "dtable", 1, dbias.dim(0));
    return Buckets(plan, dtable.dim(0), dbias.dim(1));
  }

  Buckets buckets_;
};
GESTALT_KERNEL(RelativeBiasBwd);

}  // namespace
}  // namespace gestalt::kernels_cuda
