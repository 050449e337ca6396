#include <cmath>
#include <vector>

#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"

// T5's bias by distance (Raffel and others, 2020): bias[head, reach + key - query] = table[bucket(key - query), head].
// Half of the buckets are single distances; the others grow with the logarithm up to max_distance. Without
// bidirectional all keys ahead share bucket 0, else keys ahead have the upper half of the buckets.
namespace gestalt::kernels_cpu {
namespace {

// Bucket of each distance; the logarithm is in f32, as those who trained such models computed it.
std::vector<int64_t> buckets_of(const Plan& plan, int64_t buckets, int64_t distances) {
  const bool both = plan.attrs().boolean("bidirectional", false);
  const int64_t far = plan.attrs().i64("max_distance", 128), own = both ? buckets / 2 : buckets, exact = own / 2;
  if (exact < 1 || far <= exact)
    throw InvalidArgument(place(plan) + "max_distance: got " + std::to_string(far) + " for " + std::to_string(buckets) +
                          " buckets, expected more than the distances told apart, which must be some");
  std::vector<int64_t> out;
  for (int64_t i = 0; i < distances; ++i) {
    const int64_t ahead = i - distances / 2;
    const int64_t gap = both ? std::abs(ahead) : std::max<int64_t>(-ahead, 0);
    int64_t bucket = gap;
    if (gap >= exact) {
      const float grown = std::log(static_cast<float>(gap) / static_cast<float>(exact)) /
                          static_cast<float>(std::log(static_cast<double>(far) / static_cast<double>(exact))) *
                          static_cast<float>(own - exact);
      bucket = std::min(own - 1, exact + static_cast<int64_t>(grown));
    }
    out.push_back(bucket + (both && ahead > 0 ? own : 0));
  }
  return out;
}

class RelativeBias : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.relative_bias";

  explicit RelativeBias(Plan plan) {
    const View table = plan.in(0), bias = plan.out(0);
    need_float(plan, table, "table");
    need_ndim(plan, table, "table", 2);
    need_like(plan, bias, "bias", table);
    need_ndim(plan, bias, "bias", 2);
    need_dim(plan, bias, "bias", 0, table.dim(1));
    buckets_ = buckets_of(plan, table.dim(0), bias.dim(1));
  }
  void run(Call call) const {
    const View table = call.in(0), bias = call.out(0);
    for (int64_t head = 0; head < bias.dim(0); ++head)
      for (int64_t i = 0; i < bias.dim(1); ++i)
        Out<double>(bias).one(
            head * bias.stride(0) + i * bias.stride(1),
            In<double>(table).one(buckets_[static_cast<size_t>(i)] * table.stride(0) + head * table.stride(1)));
  }

 private:
  std::vector<int64_t> buckets_;
};
GESTALT_KERNEL(RelativeBias);

class RelativeBiasBwd : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.relative_bias_bwd";
  static constexpr uint64_t flags = CpuKernel::accumulating;

  explicit RelativeBiasBwd(Plan plan) {
    const View dbias = plan.in(0), dtable = plan.out(0);
    need_float(plan, dbias, "dbias");
    need_ndim(plan, dbias, "dbias", 2);
    need_like(plan, dtable, "dtable", dbias);
    need_ndim(plan, dtable, "dtable", 2);
    need_dim(plan, dtable, "dtable", 1, dbias.dim(0));
    buckets_ = buckets_of(plan, dtable.dim(0), dbias.dim(1));
    plan.workspace(static_cast<uint64_t>(dtable.dim(0)) * sizeof(double));
  }
  void run(Call call) const {
    const View dbias = call.in(0), dtable = call.out(0);
    double* sums = static_cast<double*>(call.workspace());
    for (int64_t head = 0; head < dbias.dim(0); ++head) {
      std::fill(sums, sums + dtable.dim(0), 0.0);
      for (int64_t i = 0; i < dbias.dim(1); ++i)
        sums[buckets_[static_cast<size_t>(i)]] += In<double>(dbias).one(head * dbias.stride(0) + i * dbias.stride(1));
      for (int64_t b = 0; b < dtable.dim(0); ++b)
        Out<double>(dtable, call.accumulate(0)).one(b * dtable.stride(0) + head * dtable.stride(1), sums[b]);
    }
  }

 private:
  std::vector<int64_t> buckets_;
};
GESTALT_KERNEL(RelativeBiasBwd);

}  // namespace
}  // namespace gestalt::kernels_cpu
