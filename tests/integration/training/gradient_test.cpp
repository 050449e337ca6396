// Gradients of the whole model in f64 against finite differences of the loss, one variant of the model a case.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/runtime/parallel.h"
#include "tests/catch_compat.hpp"
#include "tests/integration/training/training_run.h"

namespace gestalt::test {

namespace {

using core::Parameter;
using Location = core::ParameterStore::Location;

// Thousands of tiny steps: waking a team of threads for each op would take most of the time.
class OneThread {
 public:
  OneThread() { core::set_num_threads(1); }
  ~OneThread() { core::set_num_threads(before_); }

 private:
  int64_t before_ = core::parallel()->num_threads(core::parallel()->self);
};

// Four evaluations an element: the error of the formula is h^4 / 30 times the fifth derivative.
class Differences {
 public:
  explicit Differences(TrainingRun& run) : run_(run) {}

  double loss() { return run_.trainer().accumulate_gradients({0, 1}); }

  double at(const Location& weights, int64_t element) {
    const Location one{static_cast<char*>(weights.data) + 8 * element, GESTALT_F64, 1};
    double x = 0;
    std::memcpy(&x, run_.store().read(one).data(), 8);
    auto moved = [&](double by) {
      const double y = x + by;
      run_.store().write(one, &y, 8);
      return loss();
    };
    const double near = moved(kStep) - moved(-kStep), far = moved(2 * kStep) - moved(-2 * kStep);
    run_.store().write(one, &x, 8);
    return (8 * near - far) / (12 * kStep);
  }

 private:
  static constexpr double kStep = 1e-3;
  TrainingRun& run_;
};

// All of a vector; of a matrix the largest gradient and elements spread over it.
std::vector<int64_t> chosen(const Parameter& p, const double* gradient, int64_t length) {
  std::vector<int64_t> list;
  if (p.type.ndim < 2) {
    for (int64_t i = 0; i < length; ++i) list.push_back(i);
    return list;
  }
  list.push_back(
      std::max_element(gradient, gradient + length, [](double a, double b) { return std::abs(a) < std::abs(b); }) -
      gradient);
  for (int64_t i = 0; i < 6; ++i) list.push_back((length / 7 * (i + 1) + 13 * i) % length);
  return list;
}

void check_gradients(std::vector<std::string> sets) {
  if (!plugins_built()) return;
  const OneThread one_thread;
  // Weights of deviation 0.3: far from the linear beginning of a training, where mistakes of second order hide.
  sets.insert(sets.begin(), {"run.dtype=f64", "model.hidden=16", "model.ffn=24", "model.seq_len=16",
                             "model.init_std=0.3", "train.global_batch=2", "train.micro_batch=2"});
  TrainingRun run(sets);
  Differences differences(run);
  // Biases and norm weights leave their initial zeros and ones.
  for (const Parameter* p : run.session().tree().parameters()) {
    if (p->type.ndim >= 2) continue;
    const Location at = run.store().weight(*p);
    std::vector<char> bytes = run.store().read(at);
    for (int64_t i = 0; i < at.length; ++i) {
      double x = 0;
      std::memcpy(&x, bytes.data() + 8 * i, 8);
      x += 0.2 * std::sin(static_cast<double>(3 * i + 1));
      std::memcpy(bytes.data() + 8 * i, &x, 8);
    }
    run.store().write(at, bytes.data(), bytes.size());
  }
  CHECK(std::isfinite(differences.loss()));
  const Bytes gradients = run.gradients();
  CHECK(run.trainer().loss_program().unused_parameters().empty());
  int64_t elements = 0;
  double worst = 0;
  std::string worst_at;
  for (const Parameter* p : run.session().tree().parameters()) {
    const Location weights = run.store().weight(*p);
    const auto* gradient = reinterpret_cast<const double*>(gradients.at(p->path).data());
    double largest = 0;
    for (int64_t i = 0; i < weights.length; ++i) largest = std::max(largest, std::abs(gradient[i]));
    CHECK(largest > 0);
    for (int64_t i : chosen(*p, gradient, weights.length)) {
      const double want = differences.at(weights, i);
      const double off =
          std::abs(gradient[i] - want) / std::max({std::abs(want), std::abs(gradient[i]), 1e-2 * largest});
      ++elements;
      if (!(off <= worst)) {
        worst = off;
        worst_at = fmt::format("{}[{}]: {:.15g}, by differences {:.15g}", p->path, i, gradient[i], want);
      }
    }
  }
  INFO(elements << " elements; worst " << worst << " at " << worst_at);
  CHECK(elements > 80);
  CHECK(worst < 1e-6);
}

}  // namespace

TEST_CASE("gradients of the plain decoder match finite differences") { check_gradients({}); }

TEST_CASE("gradients with dropout match finite differences") { check_gradients({"model.dropout=0.2"}); }

TEST_CASE("gradients with learned positions match finite differences") {
  check_gradients({"model.positions=learned", "model.dropout=0.1"});
}

TEST_CASE("gradients with layer norm match finite differences") { check_gradients({"model.norm=layer"}); }

TEST_CASE("gradients with biases match finite differences") {
  check_gradients({"model.attention_bias=true", "model.mlp_bias=true", "model.norm=layer"});
}

TEST_CASE("gradients with SwiGLU match finite differences") {
  check_gradients({"model.activation=swiglu", "model.mlp_bias=true"});
}

TEST_CASE("gradients with grouped queries match finite differences") {
  check_gradients({"model.heads=4", "model.kv_heads=2", "model.head_size=6"});
}

TEST_CASE("gradients with a head of its own match finite differences") { check_gradients({"model.tied=false"}); }

TEST_CASE("gradients of the other activations match finite differences") {
  for (const char* name : {"gelu_erf", "silu"}) check_gradients({std::string("model.activation=") + name});
}

TEST_CASE("gradients with sinks match finite differences") {
  check_gradients({"model.attention_sinks=true", "model.heads=4", "model.kv_heads=2"});
}

TEST_CASE("gradients with an output gate match finite differences") {
  check_gradients({"model.attention_gate=true", "model.qkv_bias=true", "model.heads=4", "model.kv_heads=2"});
}

TEST_CASE("gradients with smoothed labels match finite differences") { check_gradients({"model.label_smoothing=0.1"}); }

TEST_CASE("gradients with kinds of layers that differ match finite differences") {
  check_gradients({"model.pattern=[\"sliding\", \"full\"]", "model.slots.sliding.window=5",
                   "model.slots.sliding.activation=swiglu", "model.slots.full.attention_sinks=true",
                   "model.slots.full.ffn=20"});
}

TEST_CASE("gradients with layers of one branch match finite differences") {
  check_gradients({"model.pattern=[\"*-\"]", "model.norm_placement=both", "model.dropout=0.1"});
}

TEST_CASE("gradients with everything recomputed, two streams and the simulated device match finite differences") {
  check_gradients({"run.device=sim", "run.streams=2", "device.max_delay_us=0", "model.dropout=0.1", "model.layers=1",
                   "model.recompute.paths=[\"model.layers.*\"]", "model.recompute.ops=[\"norm\", \"activation\"]"});
}

TEST_CASE("micro-batches of one, two and four samples sum to the same gradients") {
  if (!plugins_built()) return;
  auto gradients = [](int micro_batch) {
    TrainingRun run({"model.dropout=0.1", "train.micro_batch=" + std::to_string(micro_batch)});
    run.steps(1);
    return run.gradients();
  };
  const Bytes whole = gradients(4);
  for (int micro_batch : {1, 2}) {
    for (const auto& [name, bytes] : gradients(micro_batch)) {
      const auto* a = reinterpret_cast<const float*>(whole.at(name).data());
      const auto* b = reinterpret_cast<const float*>(bytes.data());
      double off = 0, norm = 0;
      for (size_t i = 0; i < bytes.size() / 4; ++i) {
        off += (double{a[i]} - double{b[i]}) * (double{a[i]} - double{b[i]});
        norm += double{a[i]} * double{a[i]};
      }
      INFO("micro_batch " << micro_batch << ", " << name);
      CHECK(norm > 0);
      CHECK(std::sqrt(off) <= 1e-6 * std::sqrt(norm));
    }
  }
}

}  // namespace gestalt::test
