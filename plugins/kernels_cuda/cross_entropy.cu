#include "gestalt/op_plans/cross_entropy.hpp"
#include "plugins/kernels_cuda/packed.cuh"
#include "plugins/kernels_cuda/rows.cuh"

// loss_sum = sum over tokens of weight (lse - logits[label]) with lse = log sum exp(logits). A token of weight 0 adds
// nothing, whatever its label. The gradient is weight dloss (exp(logits - lse) - onehot(label)). Label smoothing
// s takes (1 - s) of the label and s / vocab of every class in place of the label. Logits may be a part of all classes,
// columns [first, first + n) of `classes`, as a rank holds them whose output table is cut. A block does a token: one
// pass forward with a running maximum, one pass backward, which may overlay the logits.
namespace gestalt::kernels_cuda {
namespace {

constexpr int kLossThreads = 512;

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
  int64_t first, classes;
  PerToken part[4];  // of a part: largest logit, sum of exp(logit - largest), the label's logit, sum of the logits
};

// Threads for a row: small vocabularies need few.
int threads_for(int64_t vocab) {
  return static_cast<int>(std::clamp<int64_t>((vocab + 32 * kChunk - 1) / (32 * kChunk) * 32, 32, kLossThreads));
}

// Writes what thread 0 knows of a token: lse and the loss, or what a part of the classes adds to them.
template <bool kPart, class C>
__device__ __forceinline__ void finish_token(const LossArgs& a, int64_t t, const Lse<C>& lse, C plain_sum,
                                             double* losses) {
  const double weight = load_one<double>(a.weights.side, t * a.weights.step);
  const int64_t label = load_one<int64_t>(a.labels.side, t * a.labels.step), own = label - a.first;
  C aim = C(0);
  if (own >= 0 && own < a.vocab) aim = load_one<C>(a.logits, t * a.row + own * a.column);
  if (weight != 0 && (label < 0 || label >= a.classes)) aim = not_a_number<C>();
  if constexpr (kPart) {
    const C values[4] = {lse.top, lse.sum, aim, plain_sum};
#pragma unroll
    for (int i = 0; i < 4; ++i) store_one<C>(a.part[i].side, t * a.part[i].step, values[i]);
  } else {
    const C total = lse.value();
    store_one<C>(a.lse.side, t * a.lse.step, total);
    double loss = 0;
    if (weight != 0) {
      loss = weight * static_cast<double>(total - aim);
      if (a.smoothing != 0)
        loss += weight * a.smoothing * (static_cast<double>(aim) - static_cast<double>(plain_sum) / a.vocab);
    }
    losses[t] = loss;
  }
}

template <class C, bool kPart>
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
    if (kPart || a.smoothing != 0) {
#pragma unroll
      for (int j = 0; j < kChunk; ++j) plain_sum += j < n ? x[j] : C(0);
    }
  }
  lse = group_lse<kLossThreads>(lse);
  if (kPart || a.smoothing != 0) plain_sum = group_sum<kLossThreads>(plain_sum);
  if (threadIdx.x == 0) finish_token<kPart>(a, t, lse, plain_sum, losses);
}

// The same for rows of whole chunks of one type: several chunks a thread are in flight.
template <int kBytes, bool kPart>
__global__ void __launch_bounds__(kLossThreads)
    packed_cross_entropy(const __grid_constant__ LossArgs a, bool half, double* losses) {
  constexpr int kFlight = 8 / kBytes;
  const int64_t t = blockIdx.x;
  const char* row = a.logits.data + t * a.row * kBytes;
  const int chunks = static_cast<int>(a.vocab / kChunk), threads = static_cast<int>(blockDim.x);
  float top = -infinity<float>(), shift = 0, sum = 0, plain_sum = 0;  // shift: top in powers of two
  for (int first = static_cast<int>(threadIdx.x); first < chunks; first += kFlight * threads) {
    Packed<kBytes> packed[kFlight];
#pragma unroll
    for (int u = 0; u < kFlight; ++u)
      if (const int chunk = first + u * threads; chunk < chunks)
        packed[u].load(row + static_cast<int64_t>(chunk) * (kChunk * kBytes));
#pragma unroll
    for (int u = 0; u < kFlight; ++u) {
      if (first + u * threads >= chunks) continue;
      float x[kChunk];
      packed[u].unpack(half, x);
      float high = x[0];
#pragma unroll
      for (int j = 1; j < kChunk; ++j) high = fmaxf(high, x[j]);
      if (high > top) {
        sum *= exp_of(top - high);
        top = high;
        shift = high * kLog2e<float>;
      }
#pragma unroll
      for (int j = 0; j < kChunk; ++j) sum += exp2_of(fmaf(x[j], kLog2e<float>, -shift));
      if (kPart || a.smoothing != 0) {
#pragma unroll
        for (int j = 0; j < kChunk; ++j) plain_sum += x[j];
      }
    }
  }
  Lse<float> lse;
  lse.top = top;
  lse.sum = sum;
  lse = group_lse<kLossThreads>(lse);
  if (kPart || a.smoothing != 0) plain_sum = group_sum<kLossThreads>(plain_sum);
  if (threadIdx.x == 0) finish_token<kPart>(a, t, lse, plain_sum, losses);
}

__global__ void __launch_bounds__(kLossThreads) add_losses(const double* losses, int64_t tokens, const Side y) {
  double total = 0;
  for (int64_t i = threadIdx.x; i < tokens; i += kLossThreads) total += losses[i];
  total = group_sum<kLossThreads>(total);
  if (threadIdx.x == 0) store_one<double>(y, 0, total);
}

// What one token's gradient needs: factor (exp(x - lse) - ...), see above.
template <class C>
struct TokenGradient {
  C factor, lse, spread, aim;
  int64_t label;
  bool trained;

  __device__ TokenGradient(const LossArgs& a, const Side& dloss, int64_t t) : label(-1) {
    factor = load_one<C>(a.weights.side, t * a.weights.step);
    trained = factor != C(0);
    factor *= load_one<C>(dloss, 0);
    lse = load_one<C>(a.lse.side, t * a.lse.step);
    if (trained) {
      label = load_one<int64_t>(a.labels.side, t * a.labels.step);
      if (label < 0 || label >= a.classes) factor = not_a_number<C>();
      label -= a.first;
    }
    spread = factor * static_cast<C>(a.smoothing / static_cast<double>(a.classes));
    aim = factor - factor * static_cast<C>(a.smoothing);
  }
  // Takes the label's part off, if it lies among the eight from i on.
  __device__ __forceinline__ void take_label(int64_t i, C (&x)[kChunk]) const {
    const int64_t own = label - i;
    if (own < 0 || own >= kChunk) return;
#pragma unroll
    for (int j = 0; j < kChunk; ++j)
      if (j == own) x[j] -= aim;
  }
};

template <class C>
__global__ void __launch_bounds__(kLossThreads)
    cross_entropy_bwd(const __grid_constant__ LossArgs a, const Side dloss) {
  const int64_t t = blockIdx.x, stride = static_cast<int64_t>(blockDim.x) * kChunk;
  const TokenGradient<C> g(a, dloss, t);
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * kChunk; i < a.vocab; i += stride) {
    const int n = a.vocab - i < kChunk ? static_cast<int>(a.vocab - i) : kChunk;
    C x[kChunk] = {};
    if (g.trained) {
      load_chunk(a.logits, t * a.row + i * a.column, a.column, n, x);
#pragma unroll
      for (int j = 0; j < kChunk; ++j) x[j] = g.factor * exp_of(x[j] - g.lse) - g.spread;
      g.take_label(i, x);
    }
    store_chunk(a.out, t * a.out_row + i * a.out_column, a.out_column, n, x);
  }
}

template <int kBytes>
__global__ void __launch_bounds__(kLossThreads)
    packed_cross_entropy_bwd(const __grid_constant__ LossArgs a, const Side dloss, bool half) {
  constexpr int kFlight = 8 / kBytes;
  const int64_t t = blockIdx.x;
  const TokenGradient<float> g(a, dloss, t);
  const char* row = a.logits.data + t * a.row * kBytes;
  char* to = a.out.data + t * a.out_row * kBytes;
  const int chunks = static_cast<int>(a.vocab / kChunk), threads = static_cast<int>(blockDim.x);
  const float shift = g.lse * kLog2e<float>;
  for (int first = static_cast<int>(threadIdx.x); first < chunks; first += kFlight * threads) {
    Packed<kBytes> packed[kFlight];
#pragma unroll
    for (int u = 0; u < kFlight; ++u)
      if (const int chunk = first + u * threads; g.trained && chunk < chunks)
        packed[u].load(row + static_cast<int64_t>(chunk) * (kChunk * kBytes));
#pragma unroll
    for (int u = 0; u < kFlight; ++u) {
      const int chunk = first + u * threads;
      if (chunk >= chunks) continue;
      float x[kChunk] = {};
      if (g.trained) {
        packed[u].unpack(half, x);
#pragma unroll
        for (int j = 0; j < kChunk; ++j) x[j] = g.factor * exp2_of(fmaf(x[j], kLog2e<float>, -shift)) - g.spread;
        g.take_label(static_cast<int64_t>(chunk) * kChunk, x);
      }
      store_packed<kBytes>(to + static_cast<int64_t>(chunk) * (kChunk * kBytes), half, x);
    }
  }
}

// What the forward takes of a call, without its outputs.
LossArgs forward_args(const Call& call, double smoothing, int64_t first, int64_t classes) {
  const View logits = call.in(0);
  return {.logits = side_of(logits),
          .out = {},
          .row = logits.stride(0),
          .column = logits.stride(1),
          .out_row = 0,
          .out_column = 0,
          .vocab = logits.dim(1),
          .labels = per_token(call.in(1)),
          .weights = per_token(call.in(2)),
          .lse = {},
          .smoothing = smoothing,
          .first = first,
          .classes = classes,
          .part = {}};
}

template <class C, bool kPart>
void forward(const Call& call, const LossArgs& a, double* losses) {
  const View logits = call.in(0);
  const auto blocks = static_cast<unsigned>(logits.dim(0));
  const int threads = threads_for(a.vocab);
  if (blocks == 0) return;
  if (sizeof(C) == 8 || !has_packed_rows(logits, logits.dtype()))
    cross_entropy<C, kPart><<<blocks, threads, 0, stream_of(call)>>>(a, losses);
  else if (size_of(logits.dtype()) == 2)
    packed_cross_entropy<2, kPart><<<blocks, threads, 0, stream_of(call)>>>(a, logits.is(kF16), losses);
  else
    packed_cross_entropy<4, kPart><<<blocks, threads, 0, stream_of(call)>>>(a, false, losses);
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
    LossArgs a = forward_args(call, smoothing_, 0, call.in(0).dim(1));
    a.lse = per_token(call.out(1));
    double* losses = static_cast<double*>(call.workspace());
    forward<C, false>(call, a, losses);
    add_losses<<<1, kLossThreads, 0, stream_of(call)>>>(losses, call.in(0).dim(0), side_of(call.out(0)));
    check_launch(op);
  }

  double smoothing_;
  void (CrossEntropy::*run_)(Call) const;
};
GESTALT_KERNEL(CrossEntropy);

// What one part of the classes adds to the cross entropy over all of them.
class CrossEntropyPart : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.cross_entropy_part";

  explicit CrossEntropyPart(Plan plan) {
    need_cross_entropy(plan);
    range_ = class_range(plan);
    run_ = for_compute_type(plan.in(0).dtype(), &CrossEntropyPart::run_as<float>, &CrossEntropyPart::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    LossArgs a = forward_args(call, 0, range_.first, range_.classes);
    for (uint64_t i = 0; i < 4; ++i) a.part[i] = per_token(call.out(i));
    forward<C, true>(call, a, nullptr);
    check_launch(op);
  }

  ClassRange range_;
  void (CrossEntropyPart::*run_)(Call) const;
};
GESTALT_KERNEL(CrossEntropyPart);

struct Whole {
  static constexpr std::string_view op = "core.cross_entropy_bwd";
};
struct OfPart {
  static constexpr std::string_view op = "core.cross_entropy_parallel_bwd";
};

// Of all classes, or of a part of them with the lse over all.
template <class Of>
class CrossEntropyBwd : public ElementKernel {
 public:
  static constexpr std::string_view op = Of::op;

  explicit CrossEntropyBwd(Plan plan) : smoothing_(smoothing_of(plan)) {
    need_cross_entropy(plan);
    range_ = class_range(plan);
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
                     .smoothing = smoothing_,
                     .first = range_.first,
                     .classes = range_.classes,
                     .part = {}};
    const auto blocks = static_cast<unsigned>(logits.dim(0));
    const int threads = threads_for(a.vocab);
    const Side dloss = side_of(call.in(4));
    if (sizeof(C) == 8 || !has_packed_rows(logits, logits.dtype()) || !has_packed_rows(dx, logits.dtype()))
      cross_entropy_bwd<C><<<blocks, threads, 0, stream_of(call)>>>(a, dloss);
    else if (size_of(logits.dtype()) == 2)
      packed_cross_entropy_bwd<2><<<blocks, threads, 0, stream_of(call)>>>(a, dloss, logits.is(kF16));
    else
      packed_cross_entropy_bwd<4><<<blocks, threads, 0, stream_of(call)>>>(a, dloss, false);
    check_launch(op);
  }

  double smoothing_;
  ClassRange range_;
  void (CrossEntropyBwd::*run_)(Call) const;
};
GESTALT_KERNEL(CrossEntropyBwd<Whole>);
GESTALT_KERNEL(CrossEntropyBwd<OfPart>);

}  // namespace
}  // namespace gestalt::kernels_cuda
