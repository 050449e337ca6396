#pragma once

#include <cstdint>

namespace gestalt::core {

// The factor on the loss of an f16 run, which keeps small gradients above f16's smallest number: halved by a step whose
// gradient is not finite (that step changes nothing), doubled after kInterval good steps. The loss is a sum over tokens,
// so a gradient of the logits is at most about 1 and the first factor may be modest. Other dtypes: always 1.
class LossScale {
 public:
  static constexpr double kFirst = 64, kMin = 1, kMax = 16777216;
  static constexpr int64_t kInterval = 1000;

  explicit LossScale(bool adapts) : adapts_(adapts), value_(adapts ? kFirst : 1) {}

  bool adapts() const { return adapts_; }
  double value() const { return value_; }
  int64_t good_steps() const { return good_; }
  void restore(double value, int64_t good_steps) {
    value_ = value;
    good_ = good_steps;
  }
  void step(bool finite) {
    if (!adapts_) return;
    if (!finite) {
      value_ = value_ / 2 > kMin ? value_ / 2 : kMin;
      good_ = 0;
    } else if (++good_ >= kInterval) {
      value_ = value_ * 2 < kMax ? value_ * 2 : kMax;
      good_ = 0;
    }
  }

 private:
  bool adapts_;
  double value_;
  int64_t good_ = 0;
};

}  // namespace gestalt::core
