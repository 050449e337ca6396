// One global batch cut into micro-batches whose samples have unequal numbers of trained tokens: the loss is the sum
// over all tokens over their number, and the gradients are those of the whole, however it is cut.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>

#include "core/tensor/tensor.h"
#include "tests/catch_compat.hpp"
#include "tests/integration/training/training_run.h"

namespace gestalt::test {

namespace {

using Sets = std::vector<std::string>;

// Ids, and how many of the last of them are trained. An untrained token has a label that no vocabulary holds.
struct Sample {
  std::vector<int32_t> tokens, labels;
  int64_t trained;
};

// Samples one after the other, as session.h wants a batch.
class Batch {
 public:
  Batch(const std::vector<Sample>& samples, int64_t first_index) {
    for (const Sample& s : samples) {
      const auto length = static_cast<int64_t>(s.tokens.size());
      for (int64_t i = 0; i < length; ++i) {
        const bool trained = i >= length - s.trained;
        tokens_.push_back(s.tokens[static_cast<size_t>(i)]);
        positions_.push_back(static_cast<int32_t>(i));
        keys_.insert(keys_.end(), {static_cast<int32_t>(first_index), static_cast<int32_t>(i)});
        labels_.push_back(trained ? s.labels[static_cast<size_t>(i)] : -100);
        weights_.push_back(trained ? 1.0f : 0.0f);
      }
      seq_starts_.push_back(static_cast<int32_t>(tokens_.size()));
      ++first_index;
    }
    const auto t = static_cast<int64_t>(tokens_.size());
    add("tokens", GESTALT_I32, {t}, tokens_.data());
    add("positions", GESTALT_I32, {t}, positions_.data());
    add("seq_starts", GESTALT_I32, {static_cast<int64_t>(seq_starts_.size())}, seq_starts_.data());
    add("keys", GESTALT_I32, {t, 2}, keys_.data());
    add("labels", GESTALT_I32, {t}, labels_.data());
    add("weights", GESTALT_F32, {t}, weights_.data());
  }
  Batch(const Batch&) = delete;
  const std::vector<gestalt_batch_view>& fields() const { return fields_; }

 private:
  void add(const char* name, uint32_t dtype, const std::vector<int64_t>& shape, void* data) {
    tensors_.emplace_back(dtype, shape, data);
    fields_.push_back({{name, std::strlen(name)}, tensors_.back().view});
  }

  std::vector<int32_t> tokens_, positions_, seq_starts_ = {0}, keys_, labels_;
  std::vector<float> weights_;
  std::deque<core::Tensor> tensors_;  // hold the shapes of the views
  std::vector<gestalt_batch_view> fields_;
};

struct Outcome {
  double loss_sum = 0, weight = 0, loss = 0;
  std::vector<double> micro_sums;  // of each micro-batch
  Bytes gradients;
};

// Loss and gradients of the samples in micro-batches, then an update with rate 0. The first micro-batch is the largest.
Outcome run_cut(TrainingRun& run, const std::vector<Sample>& samples, size_t micro_batch) {
  Outcome out;
  double before = 0;
  for (size_t first = 0; first < samples.size(); first += micro_batch) {
    const Batch batch({samples.begin() + static_cast<std::ptrdiff_t>(first),
                       samples.begin() + static_cast<std::ptrdiff_t>(std::min(first + micro_batch, samples.size()))},
                      static_cast<int64_t>(first));
    const auto [sum, weight] =
        run.session().run_batch(batch.fields(), GESTALT_BATCH_GRADIENTS | (first > 0 ? GESTALT_BATCH_ACCUMULATE : 0));
    out.micro_sums.push_back(sum - before);
    before = out.loss_sum = sum;
    out.weight += weight;
  }
  out.gradients = run.gradients();
  const gestalt_step_result r = run.session().update(0);
  out.loss = r.loss;
  CHECK(r.weight == out.weight);
  CHECK(r.skipped == 0);
  CHECK(std::isfinite(r.grad_norm));
  return out;
}

template <class T>
std::vector<double> numbers(const std::vector<char>& bytes) {
  const auto* p = reinterpret_cast<const T*>(bytes.data());
  return {p, p + bytes.size() / sizeof(T)};
}

// The largest difference of any tensor, relative to the tensor's norm.
template <class T>
double difference(const Bytes& want, const Bytes& got) {
  double worst = 0;
  for (const auto& [name, bytes] : want) {
    const std::vector<double> a = numbers<T>(bytes), b = numbers<T>(got.at(name));
    double off = 0, norm = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      off += (a[i] - b[i]) * (a[i] - b[i]);
      norm += a[i] * a[i];
    }
    INFO(name);
    CHECK(std::isfinite(off));
    if (norm > 0)
      worst = std::max(worst, std::sqrt(off / norm));
    else
      CHECK(off == 0);
  }
  return worst;
}

// Lengths fall, so that the first micro-batch of any size is the largest; 7, 1, 0 and 5 tokens are trained.
std::vector<Sample> unequal_samples() {
  std::vector<Sample> all;
  uint32_t x = 99;
  const int64_t lengths[] = {16, 12, 9, 6}, trained[] = {7, 1, 0, 5};
  for (size_t s = 0; s < 4; ++s) {
    Sample sample{{}, {}, trained[s]};
    for (int64_t i = 0; i < lengths[s]; ++i)
      for (std::vector<int32_t>* to : {&sample.tokens, &sample.labels}) {
        x = x * 1664525u + 1013904223u;
        to->push_back(static_cast<int32_t>(x >> 24));
      }
    all.push_back(sample);
  }
  return all;
}

template <class T>
void check_cuts(const Sets& more, double tolerance) {
  Sets sets = {"model.init_std=0.1", "train.global_batch=4", "train.micro_batch=1", "optimizer.weight_decay=0"};
  sets.insert(sets.end(), more.begin(), more.end());
  const std::vector<Sample> samples = unequal_samples();
  TrainingRun whole_run(sets);
  const Outcome whole = run_cut(whole_run, samples, 4);
  CHECK(whole.weight == 13);
  CHECK(whole.loss == Approx(whole.loss_sum / 13).epsilon(1e-12));
  for (size_t micro_batch : {1, 2}) {
    INFO("micro-batches of " << micro_batch << ", " << fmt::format("{}", fmt::join(sets, " ")));
    TrainingRun run(sets);
    const Outcome cut = run_cut(run, samples, micro_batch);
    CHECK(cut.weight == 13);
    CHECK(cut.loss == Approx(whole.loss).epsilon(tolerance));
    const double off = difference<T>(whole.gradients, cut.gradients);
    INFO("worst difference " << off);
    CHECK(off <= tolerance);
    if (micro_batch != 1) continue;
    CHECK(cut.micro_sums.at(2) == 0);  // nothing is trained there
    // What a mean of the micro-batches' means would be: these samples tell the two apart.
    const double means = (cut.micro_sums[0] / 7 + cut.micro_sums[1] / 1 + cut.micro_sums[3] / 5) / 3;
    CHECK(std::abs(means - cut.loss) > 1e-3);
  }
}

}  // namespace

TEST_CASE("one, two and four micro-batches with unequal numbers of trained tokens have the same loss and gradients") {
  if (!plugins_built()) return;
  check_cuts<float>({}, 1e-6);
  check_cuts<float>({"model.dropout=0.1", "model.norm=layer", "model.attention_bias=true", "model.positions=learned"},
                    1e-6);
  check_cuts<float>(
      {"run.device=sim", "run.streams=2", "device.max_delay_us=0", "model.recompute.paths=[\"model.layers.*\"]"}, 1e-6);
  check_cuts<double>({"run.dtype=f64", "model.activation=swiglu", "model.tied=false"}, 1e-12);
}

TEST_CASE("batches from host memory between two updates leave a training as it is") {
  if (!plugins_built()) return;
  TrainingRun plain, mixed;
  const std::vector<StepBits> want = plain.steps(2);
  std::vector<StepBits> got = mixed.steps(1);
  const Batch batch(unequal_samples(), 0);
  CHECK(mixed.session().run_batch(batch.fields(), GESTALT_BATCH_GRADIENTS).second == 13);
  got.push_back(mixed.steps(1).at(0));
  CHECK(want == got);
  CHECK(differing(plain.all_state(), mixed.all_state()) == std::vector<std::string>{});
}

TEST_CASE("token losses of sum 6 over three tokens and of 10 over one have the loss 4") {
  if (!plugins_built()) return;
  constexpr int32_t kVocab = 256, kHidden = 32;
  // Layers that add nothing, and a head that gives token a's label the logit that makes the loss what the sample wants.
  auto prepare = [&](TrainingRun& run) {
    auto logit = [&](double loss) {
      const double p = std::exp(-loss);
      return std::log((kVocab - 1) * p / (1 - p));
    };
    for (const core::Parameter* p : run.session().tree().parameters()) {
      const auto at = run.store().weight(*p);
      std::vector<double> x(static_cast<size_t>(at.length), 0.0);
      if (p->path == "model.embedding.weight") x[1 * kHidden + 1] = x[2 * kHidden + 2] = 100;
      if (p->path == "model.final_norm.weight") std::fill(x.begin(), x.end(), 1.0);
      if (p->path == "model.head.weight") {
        x[11 * kHidden + 1] = logit(2) / std::sqrt(kHidden);
        x[12 * kHidden + 2] = logit(10) / std::sqrt(kHidden);
      }
      run.store().write(at, x.data(), x.size() * sizeof(double));
    }
  };
  const Sets sets = {"run.dtype=f64", "model.tied=false", "train.global_batch=2", "train.micro_batch=1",
                     "optimizer.weight_decay=0"};
  const std::vector<Sample> samples = {
      {{1, 1, 1, 1}, {11, 11, 11, 11}, 3}, {{2, 2}, {12, 12}, 1}, {{1, 2}, {11, 12}, 0}};
  TrainingRun whole_run(sets);
  prepare(whole_run);
  const Outcome whole = run_cut(whole_run, samples, 3);
  CHECK(whole.loss == Approx(4.0).epsilon(1e-6));
  TrainingRun run(sets);
  prepare(run);
  const Outcome cut = run_cut(run, samples, 1);
  CHECK(cut.micro_sums.at(0) == Approx(6.0).epsilon(1e-6));
  CHECK(cut.micro_sums.at(1) == Approx(10.0).epsilon(1e-6));
  CHECK(cut.micro_sums.at(2) == 0);
  CHECK(cut.weight == 4);
  CHECK(cut.loss == Approx(4.0).epsilon(1e-6));
  CHECK(difference<double>(whole.gradients, cut.gradients) <= 1e-12);
}

}  // namespace gestalt::test
