#include <algorithm>
#include <cmath>

#include "gestalt/philox.h"
#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"

// The next token of each row of logits [s, v]. Temperature 0 takes the largest logit, of equals the first. Else, of the
// tokens in falling order of logit (of equals the first), those that pass
//   top_k: the first k (0: all), top_p: as few as reach that part of their probability, min_p: at least that part of the
//   largest probability
// and among them the one at which u of (seed, position) falls. seeds holds seed (low, high), position, sample. logprob is
// that of the plain softmax over all tokens, without temperature. vocab above 0: later columns stand for no token.
namespace gestalt::kernels_cpu {
namespace {

class Sample : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.sample";

  explicit Sample(Plan plan) : slots_(plan.host()), vocab_(plan.attrs().i64("vocab", 0)), bias_(plan.has_in(6)) {
    const View logits = plan.in(0);
    need_float(plan, logits, "logits");
    need_ndim(plan, logits, "logits", 2);
    const char* names[] = {"temperature", "top_k", "top_p", "min_p", "seeds"};
    for (uint64_t i = 1; i < 6; ++i) {
      need_dtype(plan, plan.in(i), names[i - 1], {i == 2 || i == 5 ? kI32 : kF32});
      need_ndim(plan, plan.in(i), names[i - 1], i == 5 ? 2 : 1);
      need_dim(plan, plan.in(i), names[i - 1], 0, logits.dim(0));
    }
    need_dim(plan, plan.in(5), "seeds", 1, 4);
    if (bias_) {
      need_like(plan, plan.in(6), "bias", logits);
      need_same_shape(plan, plan.in(6), "bias", logits);
    }
    if (vocab_ < 0 || vocab_ > logits.dim(1))
      throw InvalidArgument(place(plan) + "vocab: got " + std::to_string(vocab_) + ", expected 0 to " +
                            std::to_string(logits.dim(1)));
    if (vocab_ == 0) vocab_ = logits.dim(1);
    if (vocab_ == 0) throw InvalidArgument(place(plan) + "logits: no column, got " + describe(logits));
    slot_bytes_ = (vocab_ * static_cast<int64_t>(sizeof(double) + sizeof(int32_t)) + 63) / 64 * 64;
    plan.workspace(static_cast<uint64_t>(slots_.count() * slot_bytes_));
  }

  void run(Call call) const {
    slots_(call.in(0).dim(0), 1, [&](int64_t slot, int64_t begin, int64_t end) {
      auto* values = reinterpret_cast<double*>(static_cast<char*>(call.workspace()) + slot * slot_bytes_);
      for (int64_t s = begin; s < end; ++s) one(call, s, values, reinterpret_cast<int32_t*>(values + vocab_));
    });
  }

 private:
  static double number(View view, int64_t s) { return In<double>(view).one(s * view.stride(0)); }

  void one(Call call, int64_t s, double* x, int32_t* order) const {
    const View logits = call.in(0);
    const In<double> in(logits);
    for (int64_t i = 0; i < vocab_; ++i) x[i] = in.one(s * logits.stride(0) + i * logits.stride(1));
    if (bias_) {
      const View bias = call.in(6);
      const In<double> add(bias);
      for (int64_t i = 0; i < vocab_; ++i) x[i] += add.one(s * bias.stride(0) + i * bias.stride(1));
    }
    const int64_t best = std::max_element(x, x + vocab_) - x;
    double all = 0;
    for (int64_t i = 0; i < vocab_; ++i) all += std::exp(x[i] - x[best]);
    const double temperature = number(call.in(1), s);
    const int64_t chosen = temperature > 0 ? draw(call, s, temperature, x, best, order) : best;
    const View ids = call.out(0), logprob = call.out(1);
    Out<int64_t>(ids).one(s * ids.stride(0), chosen);
    Out<double>(logprob).one(s * logprob.stride(0), x[chosen] - x[best] - std::log(all));
  }

  int64_t draw(Call call, int64_t s, double temperature, const double* x, int64_t best, int32_t* order) const {
    const int64_t top_k = In<int64_t>(call.in(2)).one(s * call.in(2).stride(0));
    const double top_p = number(call.in(3), s), min_p = number(call.in(4), s);
    int64_t keep = top_k > 0 ? std::min(top_k, vocab_) : vocab_;
    for (int64_t i = 0; i < vocab_; ++i) order[i] = static_cast<int32_t>(i);
    std::partial_sort(order, order + keep, order + vocab_,
                      [x](int32_t a, int32_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); });
    auto weight = [&](int64_t i) { return std::exp((x[order[i]] - x[best]) / temperature); };
    double total = 0, sum = 0;
    for (int64_t i = 0; i < keep; ++i) total += weight(i);
    int64_t kept = 0;
    while (kept < keep && (kept == 0 || (sum < top_p * total && weight(kept) >= min_p))) sum += weight(kept++);
    const View seeds = call.in(5);
    auto word = [&](int64_t i) {
      return static_cast<uint32_t>(In<int64_t>(seeds).one(s * seeds.stride(0) + i * seeds.stride(1)));
    };
    const PhiloxBlock bits = philox_token(word(0) | uint64_t{word(1)} << 32, 0, word(3), word(2), 0, 0);
    double at = static_cast<double>(philox_uniform(bits.word[0])) * sum;
    for (int64_t i = 0; i < kept; ++i)
      if ((at -= weight(i)) < 0) return order[i];
    return order[kept - 1];
  }

  Slots slots_;
  int64_t vocab_, slot_bytes_ = 0;
  bool bias_;
};
GESTALT_KERNEL(Sample);

}  // namespace
}  // namespace gestalt::kernels_cpu
