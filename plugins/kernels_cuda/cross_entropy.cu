#include "plugins/kernels_cuda/rows.cuh"

// loss_sum = sum over tokens of weight (lse - logits[label]) with lse = log sum exp(logits). A token of weight 0 adds
// nothing and its label is not read. The gradient is weight dloss (exp(logits - lse) - onehot(label)). Label smoothing
// s takes (1 - s) of the label and s / vocab of every class in place of the label. A block does a token: one pass
// forward with a running maximum, one pass backward, which may overlay the logits.
namespace gestalt::kernels_cuda {
namespace {

constexpr int kLossThreads = 512;

void need_cross_entropy(const Plan& plan) {
  const View logits = plan.in(0), labels = plan.in(1), weights = plan.in(2);
  need_float(plan, logits, "logits");
  need_ndim(plan, logits, "logits", 2);
  need_index(plan, labels, "labels");
  need_ndim(plan, labels, "labels", 1);
  need_dim(plan, labels, "labels", 0, logits.dim(0));
  need_dtype(plan, weights, "weights", {kF32, kF64});
  need_ndim(plan, weights, "weights", 1);
  need_dim(plan, weights, "weights", 0, logits.dim(0));
}

double smoothing_of(const Plan& plan) {
  const double s = plan.attrs().f64("label_smoothing", 0);
  if (!(s >= 0 && s < 1))
    throw InvalidArgument(place(plan) + "label_smoothing: got " + std::to_string(s) + ", expected 0 up to below 1");
  return s;
}

// One number a token.
struct PerToken {
  Side side;
  int64_t step;
};
PerToken per_token(View v) { return {side_of(v), v.stride(0)}; }

struct LossArgs {
  Side logits, out;  // out: of the backward
  int64_t row, column, out_row, out_column;
  int64_t vocab;
  PerToken labels, weights, lse;
  double smoothing;
};

// Threads for a row: small vocabularies need few.
int threads_for(int64_t vocab) {
  return static_cast<int>(std::clamp<int64_t>((vocab + 32 * kChunk - 1) / (32 * kChunk) * 32, 32, kLossThreads));
}

template <class C>
__global__ void __launch_bounds__(kLossThreads) cross_entropy(const __grid_constant__ LossArgs a, double* losses) {
  const int64_t t = blockIdx.x, stride = static_cast<int64_t>(blockDim.x) * kChunk;
  const int64_t at = t * a.row;
  Lse<C> lse;
  C plain_sum = C(0);
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * kChunk; i < a.vocab; i += stride) {
    const int n = a.vocab - i < kChunk ? static_cast<int>(a.vocab - i) : kChunk;
    C x[kChunk];
    load_chunk(a.logits, at + i * a.column, a.column, n, x, -infinity<C>());
    lse.add(x);
    if (a.smoothing != 0) {
#pragma unroll
      for (int j = 0; j < kChunk; ++j) plain_sum += j < n ? x[j] : C(0);
    }
  }
  const C total = group_lse<kLossThreads>(lse).value();
  if (a.smoothing != 0) plain_sum = group_sum<kLossThreads>(plain_sum);
  if (threadIdx.x != 0) return;
  store_one<C>(a.lse.side, t * a.lse.step, total);
  const double weight = load_one<double>(a.weights.side, t * a.weights.step);
  double loss = 0;
  if (weight != 0) {
    const int64_t label = load_one<int64_t>(a.labels.side, t * a.labels.step);
    const bool valid = label >= 0 && label < a.vocab;
    const C aim = valid ? load_one<C>(a.logits, at + label * a.column) : not_a_number<C>();
    loss = weight * static_cast<double>(total - aim);
    if (a.smoothing != 0)
      loss += weight * a.smoothing * (static_cast<double>(aim) - static_cast<double>(plain_sum) / a.vocab);
  }
  losses[t] = loss;
}

__global__ void __launch_bounds__(kLossThreads) add_losses(const double* losses, int64_t tokens, const Side y) {
  double total = 0;
  for (int64_t i = threadIdx.x; i < tokens; i += kLossThreads) total += losses[i];
  total = group_sum<kLossThreads>(total);
  if (threadIdx.x == 0) store_one<double>(y, 0, total);
}

template <class C>
__global__ void __launch_bounds__(kLossThreads)
    cross_entropy_bwd(const __grid_constant__ LossArgs a, const Side dloss) {
  const int64_t t = blockIdx.x, stride = static_cast<int64_t>(blockDim.x) * kChunk;
  const int64_t at = t * a.row, to = t * a.out_row;
  C factor = load_one<C>(a.weights.side, t * a.weights.step);
  const bool trained = factor != C(0);
  factor *= load_one<C>(dloss, 0);
  const C lse = load_one<C>(a.lse.side, t * a.lse.step);
  int64_t label = -1;
  if (trained) {
    label = load_one<int64_t>(a.labels.side, t * a.labels.step);
    if (label < 0 || label >= a.vocab) factor = not_a_number<C>();
  }
  const C spread = factor * static_cast<C>(a.smoothing / static_cast<double>(a.vocab));
  const C aim = factor - factor * static_cast<C>(a.smoothing);
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * kChunk; i < a.vocab; i += stride) {
    const int n = a.vocab - i < kChunk ? static_cast<int>(a.vocab - i) : kChunk;
    C x[kChunk];
    if (!trained) {
#pragma unroll
      for (int j = 0; j < kChunk; ++j) x[j] = C(0);
    } else {
      load_chunk(a.logits, at + i * a.column, a.column, n, x);
#pragma unroll
      for (int j = 0; j < kChunk; ++j) x[j] = factor * exp_of(x[j] - lse) - spread;
      const int64_t own = label - i;
      if (own >= 0 && own < kChunk) {
#pragma unroll
        for (int j = 0; j < kChunk; ++j)
          if (j == own) x[j] -= aim;
      }
    }
    store_chunk(a.out, to + i * a.out_column, a.out_column, n, x);
  }
}

class CrossEntropy : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.cross_entropy";

  explicit CrossEntropy(Plan plan) : smoothing_(smoothing_of(plan)) {
    need_cross_entropy(plan);
    plan.workspace(static_cast<uint64_t>(plan.in(0).dim(0)) * sizeof(double));
    run_ = for_compute_type(plan.in(0).dtype(), &CrossEntropy::run_as<float>, &CrossEntropy::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View logits = call.in(0);
    const LossArgs a{.logits = side_of(logits),
                     .out = {},
                     .row = logits.stride(0),
                     .column = logits.stride(1),
                     .out_row = 0,
                     .out_column = 0,
                     .vocab = logits.dim(1),
                     .labels = per_token(call.in(1)),
                     .weights = per_token(call.in(2)),
                     .lse = per_token(call.out(1)),
                     .smoothing = smoothing_};
    double* losses = static_cast<double*>(call.workspace());
    const int64_t tokens = logits.dim(0);
    if (tokens > 0)
      cross_entropy<C><<<static_cast<unsigned>(tokens), threads_for(a.vocab), 0, stream_of(call)>>>(a, losses);
    add_losses<<<1, kLossThreads, 0, stream_of(call)>>>(losses, tokens, side_of(call.out(0)));
    check_launch(op);
  }

  double smoothing_;
  void (CrossEntropy::*run_)(Call) const;
};
GESTALT_KERNEL(CrossEntropy);

class CrossEntropyBwd : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.cross_entropy_bwd";

  explicit CrossEntropyBwd(Plan plan) : smoothing_(smoothing_of(plan)) {
    need_cross_entropy(plan);
    const View logits = plan.in(0);
    need_like(plan, plan.in(3), "lse", logits);
    need_ndim(plan, plan.in(3), "lse", 1);
    need_dim(plan, plan.in(3), "lse", 0, logits.dim(0));
    need_like(plan, plan.in(4), "dloss", logits);
    need_ndim(plan, plan.in(4), "dloss", 0);
    need_like(plan, plan.out(0), "dlogits", logits);
    run_ = for_compute_type(logits.dtype(), &CrossEntropyBwd::run_as<float>, &CrossEntropyBwd::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View logits = call.in(0), dx = call.out(0);
    if (logits.numel() == 0) return;
    const LossArgs a{.logits = side_of(logits),
                     .out = side_of(dx),
                     .row = logits.stride(0),
                     .column = logits.stride(1),
                     .out_row = dx.stride(0),
                     .out_column = dx.stride(1),
                     .vocab = logits.dim(1),
                     .labels = per_token(call.in(1)),
                     .weights = per_token(call.in(2)),
                     .lse = per_token(call.in(3)),
                     .smoothing = smoothing_};
    cross_entropy_bwd<C>
        <<<static_cast<unsigned>(logits.dim(0)), threads_for(a.vocab), 0, stream_of(call)>>>(a, side_of(call.in(4)));
    check_launch(op);
  }

  double smoothing_;
  void (CrossEntropyBwd::*run_)(Call) const;
};
GESTALT_KERNEL(CrossEntropyBwd);

}  // namespace
}  // namespace gestalt::kernels_cuda
