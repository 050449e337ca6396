#include "core/session/loss_scale.h"

#include "tests/catch_compat.hpp"

using gestalt::core::LossScale;

TEST_CASE("a step that is not finite halves the loss scale, down to 1") {
  LossScale scale(true);
  scale.step(false);
  CHECK(scale.value() == LossScale::kFirst / 2);
  for (int i = 0; i < 100; ++i) scale.step(false);
  CHECK(scale.value() == 1);
}

TEST_CASE("good steps in a row double the loss scale") {
  LossScale scale(true);
  for (int64_t i = 1; i < LossScale::kInterval; ++i) scale.step(true);
  CHECK(scale.value() == LossScale::kFirst);
  scale.step(true);
  CHECK(scale.value() == 2 * LossScale::kFirst);
  CHECK(scale.good_steps() == 0);
}

TEST_CASE("a step that is not finite restarts the count") {
  LossScale scale(true);
  for (int64_t i = 1; i < LossScale::kInterval; ++i) scale.step(true);
  scale.step(false);
  scale.step(true);
  CHECK(scale.value() == LossScale::kFirst / 2);
}

TEST_CASE("runs that are not in f16 keep the loss scale 1") {
  LossScale scale(false);
  scale.step(false);
  for (int64_t i = 0; i < 2 * LossScale::kInterval; ++i) scale.step(true);
  CHECK(scale.value() == 1);
}
