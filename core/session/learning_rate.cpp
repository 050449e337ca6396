#include "core/session/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gestalt::core {

LearningRate LearningRate::from(const Config& c) {
  LearningRate r;
  r.lr = c.f64("optimizer.lr");
  r.schedule = c.str("optimizer.schedule", "constant");
  r.warmup_steps = c.i64("optimizer.warmup_steps", 0);
  if (r.schedule == "constant") return r;
  r.min_lr = c.f64("optimizer.min_lr", 0.0);
  if (r.schedule == "inverse_square_root") return r;
  r.decay_steps = c.i64("optimizer.decay_steps", c.i64("train.steps", 0));
  if (r.decay_steps == 0 && !c.has("train.minutes"))
    fail(GESTALT_CONFIG_ERROR, "[optimizer.decay_steps] schedule '{}' must know where it ends; set decay_steps or "
         "train.steps", r.schedule);
  if (r.schedule == "wsd") {
    r.wsd_decay_steps = c.i64("optimizer.wsd_decay_steps");
    r.wsd_style = c.str("optimizer.wsd_style");
  }
  return r;
}

double LearningRate::at(int64_t step) const {
  const auto s = static_cast<double>(step), w = static_cast<double>(warmup_steps);
  if (step < warmup_steps) return lr * (s + 1) / w;
  if (schedule == "constant") return lr;
  if (schedule == "inverse_square_root") return std::max(min_lr, lr * std::sqrt(std::max(w, 1.0)) / std::sqrt(s + 1));
  if (decay_steps == 0) return lr;
  const auto d = static_cast<double>(decay_steps);
  auto between = [&](double c) { return min_lr + (lr - min_lr) * c; };
  if (s >= d) return min_lr;
  if (schedule == "wsd") {
    const auto f = static_cast<double>(wsd_decay_steps);
    const double begin = d - f;
    if (s < begin) return lr;
    const double q = (s - begin) / f;
    if (wsd_style == "linear") return between(1 - q);
    if (wsd_style == "cosine") return between((1 + std::cos(std::numbers::pi * q)) / 2);
    if (wsd_style == "minus_sqrt") return between(1 - std::sqrt(q));
    return between(2 * std::pow(0.5, q) - 1);
  }
  const double r = d > w ? (s - w) / (d - w) : 1;
  return schedule == "linear" ? between(1 - r) : between((1 + std::cos(std::numbers::pi * r)) / 2);
}

}  // namespace gestalt::core
