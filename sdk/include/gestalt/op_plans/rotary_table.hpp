// The plan of core.rotary_table: what a kernel of any device checks, and the angles a position.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "gestalt/plan_checks.hpp"

namespace gestalt {

// Row t: attention_factor cos(positions[t] f_i) for i < dims/2, then the sines. f_i = theta^(-2i / dims), changed by
// kind (the formulas of the papers, as Hugging Face's modeling_rope_utils computes them):
//   default   as it is
//   linear    f / factor
//   dynamic   theta grows with the longest sequence once that is beyond original_max
//   yarn      f / factor for slow pairs, f for fast ones, a ramp between beta_slow and beta_fast turns in original_max
//   llama3    f / factor for wavelengths above original_max / low_freq_factor, f below original_max / high_freq_factor
//   longrope  f / short_factor[i], or / long_factor[i] when the longest sequence is beyond original_max
// The longest sequence is the highest position plus one. attention_factor 0: by the kind's own rule.
struct RotaryTablePlan {
  enum Kind { kDefault, kLinear, kDynamic, kYarn, kLlama3, kLongrope };

  explicit RotaryTablePlan(const Plan& plan)
      : kind(kind_of(plan)),
        half(plan.attrs().i64("dims") / 2),
        original_max(plan.attrs().i64("original_max", 0)),
        theta(plan.attrs().f64("theta", 1e4)),
        factor(plan.attrs().f64("factor", 1)) {
    const Attrs a = plan.attrs();
    const View positions = plan.in(0), table = plan.out(0);
    need_index(plan, positions, "positions");
    need_ndim(plan, positions, "positions", 1);
    need_dtype(plan, table, "table", {kF32, kF64});
    need_ndim(plan, table, "table", 2);
    need_dim(plan, table, "table", 0, positions.dim(0));
    if (half < 1)
      throw InvalidArgument(place(plan) + "dims: got " + std::to_string(a.i64("dims")) + ", expected 2 or more");
    need_dim(plan, table, "table", 1, 2 * half);
    need_above(plan, "theta", theta);
    need_above(plan, "factor", factor);
    if (kind == kYarn || kind == kLlama3 || kind == kDynamic || kind == kLongrope)
      need_above(plan, "original_max", static_cast<double>(original_max));
    frequencies.resize(static_cast<size_t>(half));
    for (int64_t i = 0; i < half; ++i) frequencies[static_cast<size_t>(i)] = frequency(theta, i);
    double rule = 1;
    if (kind == kLinear)
      for (double& f : frequencies) f /= factor;
    if (kind == kLlama3) slow_down(a);
    if (kind == kYarn) rule = ramp(a);
    if (kind == kLongrope) {
      rule = factor > 1 ? std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(original_max))) : 1;
      long_frequencies = divided(plan, "long_factor");
      frequencies = divided(plan, "short_factor");
    }
    attention_factor = a.f64("attention_factor", 0);
    if (!(attention_factor >= 0))
      throw InvalidArgument(place(plan) + "attention_factor: got " + std::to_string(attention_factor) +
                            ", expected 0 (by the kind's rule) or more");
    if (attention_factor == 0) attention_factor = rule;
  }

  double frequency(double base, int64_t i) const {
    return std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
  }

  Kind kind;
  int64_t half, original_max;  // pairs; positions that the model was trained on
  double theta, factor, attention_factor = 1;
  // Radians a position of each pair, and those of sequences longer than original_max (longrope only).
  std::vector<double> frequencies, long_frequencies;

 private:
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

  std::vector<double> divided(const Plan& plan, std::string_view name) const {
    const auto by = plan.attrs().f64_list(name);
    if (static_cast<int64_t>(by.size()) != half)
      throw InvalidArgument(place(plan) + std::string(name) + ": got " + std::to_string(by.size()) +
                            " numbers, expected " + std::to_string(half) + ", half of dims");
    std::vector<double> f;
    for (int64_t i = 0; i < half; ++i) {
      need_above(plan, name, by[static_cast<size_t>(i)]);
      f.push_back(frequency(theta, i) / by[static_cast<size_t>(i)]);
    }
    return f;
  }

  void slow_down(const Attrs& a) {
    const double low = a.f64("low_freq_factor", 1), high = a.f64("high_freq_factor", 4);
    const auto longest = static_cast<double>(original_max);
    for (double& f : frequencies) {
      const double wave = 2 * std::numbers::pi / f;
      const double smooth = (longest / wave - low) / (high - low);
      if (wave > longest / low)
        f /= factor;
      else if (wave >= longest / high)
        f = (1 - smooth) * f / factor + smooth * f;
    }
  }

  // Returns the attention factor.
  double ramp(const Attrs& a) {
    // The pair that makes `turns` full turns in original_max positions.
    const auto pair = [&](double turns) {
      return static_cast<double>(half) *
             std::log(static_cast<double>(original_max) / (turns * 2 * std::numbers::pi)) / std::log(theta);
    };
    double low = pair(a.f64("beta_fast", 32)), high = pair(a.f64("beta_slow", 1));
    if (a.boolean("truncate", true)) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, 2 * static_cast<double>(half) - 1);
    if (low == high) high += 0.001;
    for (int64_t i = 0; i < half; ++i) {
      double& f = frequencies[static_cast<size_t>(i)];
      const double slow = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
      f = f / factor * slow + f * (1 - slow);
    }
    const auto scale = [&](double m) { return factor > 1 ? 0.1 * m * std::log(factor) + 1 : 1; };
    const double m = a.f64("mscale", 0), all = a.f64("mscale_all_dim", 0);
    return m != 0 && all != 0 ? scale(m) / scale(all) : scale(1);
  }
};

}  // namespace gestalt
