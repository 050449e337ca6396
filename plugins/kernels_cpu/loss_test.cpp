#include <cmath>

#include "gestalt/philox.h"
#include "plugins/kernels_cpu/kernel_caller.h"
#include "tests/catch_compat.hpp"

namespace gestalt::kernels_cpu {
namespace {

constexpr int64_t kTokens = 60, kVocab = 41;

Reference cross_entropy() {
  return [](const std::vector<Values>& in) {
    std::vector<Values> out{{0}, {}};
    const size_t vocab = in[1].empty() ? 0 : in[0].size() / in[1].size();
    for (size_t t = 0; t < in[1].size(); ++t) {
      double sum = 0;
      for (size_t i = 0; i < vocab; ++i) sum += std::exp(in[0][t * vocab + i]);
      out[1].push_back(std::log(sum));
      if (in[2][t] != 0) out[0][0] += in[2][t] * (out[1].back() - in[0][t * vocab + static_cast<size_t>(in[1][t])]);
    }
    return out;
  };
}

struct Batch {
  Values logits = some_values(kTokens * kVocab), labels, weights;
  Batch() {
    for (double& v : logits) v *= 5;
    for (int64_t t = 0; t < kTokens; ++t) {
      labels.push_back(t % 7 == 0 ? -100 : static_cast<double>(t * 5 % kVocab));
      weights.push_back(t % 7 == 0 ? 0 : t % 3 == 0 ? 0.5 : 1);
    }
  }
};

TEST_CASE("cross entropy sums weighted token losses and ignores labels of weight 0") {
  const Batch b;
  for (DType dtype : {kI32, kI64})
    check_op({"core.cross_entropy",
              {{{kTokens, kVocab}, b.logits}, {{kTokens}, b.labels, dtype}, {{kTokens}, b.weights, kF32}},
              {{{}, false, true}, {{kTokens}, false, true}},
              {},
              cross_entropy(),
              1});
}

TEST_CASE("cross entropy of no tokens is zero") {
  Array logits(kF32, {0, 5}), labels(kI32, {0}), weights(kF32, {0}), loss(kF32, {}), lse(kF32, {0});
  call_kernel("core.cross_entropy", {&logits, &labels, &weights}, {&loss, &lse}, {});
  CHECK(loss.get() == Values{0});
}

TEST_CASE("the gradient of cross entropy matches finite differences") {
  const Values logits = some_values(4 * 9), labels{3, -1, 8, 0}, weights{1, 0, 0.5, 2};
  const auto forward = cross_entropy()({logits, labels, weights});
  check_op(
      {"core.cross_entropy_bwd",
       {{{4, 9}, logits}, {{4}, labels, kI32}, {{4}, weights, kF32}, {{4}, forward[1], 0, true}, {{}, {0.75}, 0, true}},
       {{{4, 9}}},
       {},
       [](const std::vector<Values>& in) {
         return std::vector<Values>{finite_differences(cross_entropy(), {in[0], in[1], in[2]}, 0, {in[4], Values(4)})};
       },
       100});
}

TEST_CASE("the gradient of cross entropy may overlay the logits") {
  const Batch b;
  const auto forward = cross_entropy()({b.logits, b.labels, b.weights});
  Array logits(kF32, {kTokens, kVocab}, b.logits), labels(kI32, {kTokens}, b.labels),
      weights(kF32, {kTokens}, b.weights);
  Array lse(kF32, {kTokens}, forward[1]), dloss(kF32, {}, {1}), apart(kF32, {kTokens, kVocab});
  call_kernel("core.cross_entropy_bwd", {&logits, &labels, &weights, &lse, &dloss}, {&apart}, {});
  call_kernel("core.cross_entropy_bwd", {&logits, &labels, &weights, &lse, &dloss}, {&logits}, {});
  CHECK(logits.bytes() == apart.bytes());
}

TEST_CASE("a label outside the vocabulary is refused with its position") {
  Array logits(kF32, {2, 5}), labels(kI32, {2}, {1, 5}), weights(kF32, {2}, {1, 1}), loss(kF32, {}), lse(kF32, {2});
  CHECK_THROWS_WITH(call_kernel("core.cross_entropy", {&logits, &labels, &weights}, {&loss, &lse}, {}),
                    Catch::Contains("got 5 at position 1"));
}

TEST_CASE("embedding picks rows and its gradient adds them up") {
  const Values ids{2, 0, 2, 3, 2};
  check_op({"core.embedding",
            {{{5}, ids, kI64}, {{4, 20}, some_values(80)}},
            {{{5, 20}}},
            {},
            [&](const std::vector<Values>& in) {
              Values y;
              for (double id : in[0])
                y.insert(y.end(), in[1].begin() + static_cast<int64_t>(id) * 20,
                         in[1].begin() + static_cast<int64_t>(id) * 20 + 20);
              return std::vector<Values>{y};
            }});
  check_op({"core.embedding_bwd",
            {{{5}, ids, kI32}, {{5, 20}, some_values(100)}},
            {{{4, 20}, true}},
            {{"vocab", 4}},
            [&](const std::vector<Values>& in) {
              Values y(80);
              for (size_t t = 0; t < 5; ++t)
                for (size_t i = 0; i < 20; ++i) y[static_cast<size_t>(in[0][t]) * 20 + i] += in[1][t * 20 + i];
              return std::vector<Values>{y};
            }});
}

TEST_CASE("an id outside the table is refused with its position") {
  Array ids(kI32, {2}, {0, -1}), w(kF32, {3, 2}), y(kF32, {2, 2});
  CHECK_THROWS_WITH(call_kernel("core.embedding", {&ids, &w}, {&y}, {}), Catch::Contains("got -1 at position 1"));
}

TEST_CASE("dropout is a function of seed, step, sample, position, use and column") {
  constexpr int64_t kWide = 151;  // more than the counters of one vector
  const Values x = some_values(30 * kWide), seed{-5, 7, 3, 1};
  Values keys;
  for (int t = 0; t < 30; ++t) keys.insert(keys.end(), {static_cast<double>(t / 4), static_cast<double>(t % 4)});
  for (int64_t column0 : {0, 6, 3})
    check_op({"core.dropout",
              {{{30, kWide}, x}, {{30, 2}, keys, kI32}, {{4}, seed, kI32}},
              {{{30, kWide}}},
              {{"p", 0.25}, {"use", 3}, {"column0", column0}},
              [&](const std::vector<Values>& in) {
                Values y;
                for (uint32_t t = 0; t < 30; ++t)
                  for (uint32_t i = 0; i < kWide; ++i) {
                    const uint32_t column = static_cast<uint32_t>(column0) + i;
                    const PhiloxBlock r = philox_token(0x7fffffffbu, 0x100000003u, t / 4, t % 4, 3, column / 4);
                    y.push_back(philox_uniform(r.word[column % 4]) < 0.25f ? 0 : in[0][t * kWide + i] / 0.75);
                  }
                return std::vector<Values>{y};
              }});
}

}  // namespace
}  // namespace gestalt::kernels_cpu
