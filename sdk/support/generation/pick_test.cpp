#include "support/generation/pick.h"

#include <map>
#include <vector>

#include "tests/catch_compat.hpp"

namespace gestalt::support {

TEST_CASE("temperature 0 takes the first of the largest logits") {
  const std::vector<float> logits = {0.5f, 2.0f, 2.0f, -1.0f};
  CHECK(pick(logits, {.temperature = 0}, 0) == 1);
}

TEST_CASE("draws follow the softmax, and the limits cut off its tail") {
  const std::vector<float> logits = {0.0f, 1.0f, 2.0f, -3.0f};
  auto counts = [&](Sampling how) {
    std::map<int32_t, int> n;
    for (uint64_t i = 0; i < 4000; ++i) ++n[pick(logits, how, i)];
    return n;
  };
  const auto all = counts({});
  CHECK(all.at(2) == Approx(4000 * 0.662).margin(100));
  CHECK(all.at(1) == Approx(4000 * 0.243).margin(100));
  CHECK(counts({.top_k = 2}).size() == 2);
  CHECK(counts({.top_p = 0.6}).size() == 1);
  CHECK(counts({.top_p = 0.7}).size() == 2);
  CHECK(counts({.min_p = 0.2}).size() == 2);
  CHECK(counts({.temperature = 0.01}).size() == 1);
}

TEST_CASE("a draw depends on seed and position alone") {
  const std::vector<float> logits(50, 0.0f);
  CHECK(pick(logits, {.seed = 7}, 3) == pick(logits, {.seed = 7}, 3));
  int same = 0;
  for (uint64_t i = 0; i < 50; ++i) same += pick(logits, {.seed = 7}, i) == pick(logits, {.seed = 8}, i);
  CHECK(same < 10);
}

}  // namespace gestalt::support
