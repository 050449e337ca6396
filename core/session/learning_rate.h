#pragma once

#include <cstdint>
#include <string>

#include "core/config/config.h"

namespace gestalt::core {

// The learning rate of each update. decay_steps 0: the end is not known yet, the rate stays at lr after warm-up.
// With W warm-up updates and D the update at which decay ends, update s (from 0) has
// rate lr (s + 1) / W for s < W, and after that lr or a decay over r = (s - W) / (D - W), r at most 1:
//   linear min + (lr - min)(1 - r); cosine min + (lr - min)(1 + cos(pi r)) / 2;
//   inverse_square_root max(min, lr sqrt(max(W, 1)) / sqrt(s + 1));
//   wsd lr until D - F, then min + (lr - min) c(q), q the share of the last F updates: linear 1 - q,
//   cosine (1 + cos(pi q)) / 2, exponential 2 * 0.5^q - 1, minus_sqrt 1 - sqrt(q).
struct LearningRate {
  double lr = 0, min_lr = 0;
  std::string schedule = "constant", wsd_style = "exponential";
  int64_t warmup_steps = 0, decay_steps = 0, wsd_decay_steps = 0;

  static LearningRate from(const Config& config);
  double at(int64_t step) const;
};

}  // namespace gestalt::core
