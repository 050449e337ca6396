#include <cmath>
#include <numbers>
#include <vector>

#include "plugins/kernels_cuda/rows.cuh"

// Row t: attention_factor cos(positions[t] f_i) for i < dims/2, then the sines. f_i = theta^(-2i / dims), changed by
// kind (the formulas of the papers, as Hugging Face's modeling_rope_utils computes them):
//   default   as it is
//   linear    f / factor
//   dynamic   theta grows with the longest sequence once that is beyond original_max
//   yarn      f / factor for slow pairs, f for fast ones, a ramp between beta_slow and beta_fast turns in original_max
//   llama3    f / factor for wavelengths above original_max / low_freq_factor, f below original_max / high_freq_factor
//   longrope  f / short_factor[i], or / long_factor[i] when the longest sequence is beyond original_max
// The longest sequence is the highest position plus one. attention_factor 0: by the kind's own rule.
namespace gestalt::kernels_cuda {
namespace {

constexpr int64_t kMostPairs = 256;

struct TableArgs {
  Side positions, table;
  int64_t position_step, row, column, tokens, half, original_max;
  double theta, factor, attention_factor;
  bool dynamic, two_lists;  // by the longest sequence
  double frequencies[kMostPairs], long_frequencies[kMostPairs];
};

__global__ void __launch_bounds__(kThreads) rotary_table(const __grid_constant__ TableArgs a) {
  __shared__ double grown;
  bool beyond = false;
  if (a.dynamic || a.two_lists) {
    int64_t longest = 0;
    for (int64_t t = threadIdx.x; t < a.tokens; t += kThreads)
      longest = max(longest, load_one<int64_t>(a.positions, t * a.position_step) + 1);
    longest = group_reduce<kThreads>(longest, [](int64_t x, int64_t y) { return x > y ? x : y; });
    beyond = longest > a.original_max;
    if (threadIdx.x == 0) {
      grown = 0;
      if (a.dynamic && beyond) {
        const double ratio = static_cast<double>(longest) / static_cast<double>(a.original_max);
        const double d = 2 * static_cast<double>(a.half);
        grown = a.half == 1 ? a.theta : a.theta * pow(a.factor * ratio - (a.factor - 1), d / (d - 2));
      }
    }
    __syncthreads();
  }
  const bool grows = a.dynamic && beyond;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; item < a.tokens * a.half;
       item += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t t = item / a.half, i = item % a.half;
    const double f = grows                   ? pow(grown, -static_cast<double>(i) / static_cast<double>(a.half))
                     : a.two_lists && beyond ? a.long_frequencies[i]
                                             : a.frequencies[i];
    double sine, cosine;
    sincos(static_cast<double>(load_one<int64_t>(a.positions, t * a.position_step)) * f, &sine, &cosine);
    store_one<double>(a.table, t * a.row + i * a.column, a.attention_factor * cosine);
    store_one<double>(a.table, t * a.row + (a.half + i) * a.column, a.attention_factor * sine);
  }
}

class RotaryTable : public ElementKernel {
 public:
  static constexpr std::string_view op = "core.rotary_table";

  explicit RotaryTable(Plan plan)
      : kind_(kind_of(plan)),
        half_(plan.attrs().i64("dims") / 2),
        original_max_(plan.attrs().i64("original_max", 0)),
        theta_(plan.attrs().f64("theta", 1e4)),
        factor_(plan.attrs().f64("factor", 1)) {
    const Attrs a = plan.attrs();
    const View positions = plan.in(0), table = plan.out(0);
    need_index(plan, positions, "positions");
    need_ndim(plan, positions, "positions", 1);
    need_dtype(plan, table, "table", {kF32, kF64});
    need_ndim(plan, table, "table", 2);
    need_dim(plan, table, "table", 0, positions.dim(0));
    if (half_ < 1)
      throw InvalidArgument(place(plan) + "dims: got " + std::to_string(a.i64("dims")) + ", expected 2 or more");
    if (half_ > kMostPairs)
      throw Unsupported(place(plan) + "dims: got " + std::to_string(a.i64("dims")) + ", expected at most " +
                        std::to_string(2 * kMostPairs));
    need_dim(plan, table, "table", 1, 2 * half_);
    need_above(plan, "theta", theta_);
    need_above(plan, "factor", factor_);
    if (kind_ == kYarn || kind_ == kLlama3 || kind_ == kDynamic || kind_ == kLongrope)
      need_above(plan, "original_max", static_cast<double>(original_max_));
    frequencies_.resize(static_cast<size_t>(half_));
    for (int64_t i = 0; i < half_; ++i) frequencies_[static_cast<size_t>(i)] = frequency(theta_, i);
    double rule = 1;
    if (kind_ == kLinear)
      for (double& f : frequencies_) f /= factor_;
    if (kind_ == kLlama3) slow_down(a);
    if (kind_ == kYarn) rule = ramp(a);
    if (kind_ == kLongrope) {
      rule = factor_ > 1 ? std::sqrt(1 + std::log(factor_) / std::log(static_cast<double>(original_max_))) : 1;
      long_ = divided(plan, "long_factor");
      frequencies_ = divided(plan, "short_factor");
    }
    attention_factor_ = a.f64("attention_factor", 0);
    if (!(attention_factor_ >= 0))
      throw InvalidArgument(place(plan) + "attention_factor: got " + std::to_string(attention_factor_) +
                            ", expected 0 (by the kind's rule) or more");
    if (attention_factor_ == 0) attention_factor_ = rule;
  }

  void run(Call call) const {
    const View positions = call.in(0), table = call.out(0);
    TableArgs a{.positions = side_of(positions),
                .table = side_of(table),
                .position_step = positions.stride(0),
                .row = table.stride(0),
                .column = table.stride(1),
                .tokens = positions.dim(0),
                .half = half_,
                .original_max = original_max_,
                .theta = theta_,
                .factor = factor_,
                .attention_factor = attention_factor_,
                .dynamic = kind_ == kDynamic,
                .two_lists = kind_ == kLongrope,
                .frequencies = {},
                .long_frequencies = {}};
    if (a.tokens == 0) return;
    std::copy(frequencies_.begin(), frequencies_.end(), a.frequencies);
    std::copy(long_.begin(), long_.end(), a.long_frequencies);
    const unsigned blocks = std::min(blocks_for(a.tokens * half_), 1024u);
    rotary_table<<<blocks, kThreads, 0, stream_of(call)>>>(a);
    check_launch(op);
  }

 private:
  enum Kind { kDefault, kLinear, kDynamic, kYarn, kLlama3, kLongrope };

  static Kind kind_of(const Plan& plan) {
    constexpr std::string_view names[] = {"default", "linear", "dynamic", "yarn", "llama3", "longrope"};
    const std::string_view name = plan.attrs().str("kind", "default");
    for (int i = 0; i < 6; ++i)
      if (names[i] == name) return static_cast<Kind>(i);
    throw InvalidArgument(place(plan) + "kind: got '" + std::string(name) +
                          "', expected default, linear, dynamic, yarn, llama3 or longrope");
  }
  static void need_above(const Plan& plan, std::string_view name, double value) {
    if (!(value > 0))
      throw InvalidArgument(place(plan) + std::string(name) + ": got " + std::to_string(value) + ", expected above 0");
  }

  double frequency(double theta, int64_t i) const {
    return std::pow(theta, -static_cast<double>(i) / static_cast<double>(half_));
  }

  std::vector<double> divided(const Plan& plan, std::string_view name) const {
    const auto by = plan.attrs().f64_list(name);
    if (static_cast<int64_t>(by.size()) != half_)
      throw InvalidArgument(place(plan) + std::string(name) + ": got " + std::to_string(by.size()) +
                            " numbers, expected " + std::to_string(half_) + ", half of dims");
    std::vector<double> f;
    for (int64_t i = 0; i < half_; ++i) {
      need_above(plan, name, by[static_cast<size_t>(i)]);
      f.push_back(frequency(theta_, i) / by[static_cast<size_t>(i)]);
    }
    return f;
  }

  void slow_down(const Attrs& a) {
    const double low = a.f64("low_freq_factor", 1), high = a.f64("high_freq_factor", 4);
    const auto longest = static_cast<double>(original_max_);
    for (double& f : frequencies_) {
      const double wave = 2 * std::numbers::pi / f;
      const double smooth = (longest / wave - low) / (high - low);
      if (wave > longest / low)
        f /= factor_;
      else if (wave >= longest / high)
        f = (1 - smooth) * f / factor_ + smooth * f;
    }
  }

  // Returns the attention factor.
  double ramp(const Attrs& a) {
    // The pair that makes `turns` full turns in original_max positions.
    const auto pair = [&](double turns) {
      return static_cast<double>(half_) *
             std::log(static_cast<double>(original_max_) / (turns * 2 * std::numbers::pi)) / std::log(theta_);
    };
    double low = pair(a.f64("beta_fast", 32)), high = pair(a.f64("beta_slow", 1));
    if (a.boolean("truncate", true)) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, 2 * static_cast<double>(half_) - 1);
    if (low == high) high += 0.001;
    for (int64_t i = 0; i < half_; ++i) {
      double& f = frequencies_[static_cast<size_t>(i)];
      const double slow = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
      f = f / factor_ * slow + f * (1 - slow);
    }
    const auto scale = [&](double m) { return factor_ > 1 ? 0.1 * m * std::log(factor_) + 1 : 1; };
    const double m = a.f64("mscale", 0), all = a.f64("mscale_all_dim", 0);
    return m != 0 && all != 0 ? scale(m) / scale(all) : scale(1);
  }

  Kind kind_;
  int64_t half_, original_max_;
  double theta_, factor_, attention_factor_ = 1;
  std::vector<double> frequencies_, long_;
};
GESTALT_KERNEL(RotaryTable);

}  // namespace
}  // namespace gestalt::kernels_cuda
