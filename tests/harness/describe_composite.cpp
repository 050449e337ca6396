#include <algorithm>
#include <cmath>

#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

Values plus(const Values& a, const Values& b) {
  Values y(a.shape);
  for (int64_t i = 0; i < y.size(); ++i) y[i] = a[i] + b[i];
  return y;
}

// Rows of n normalised to a mean square of 1, after taking their mean away where `centred`.
Values normal(const Values& x, int64_t n, double eps, bool centred) {
  Values y(x.shape);
  for (int64_t r = 0; r + n <= x.size(); r += n) {
    double mean = 0, square = 0;
    for (int64_t i = r; centred && i < r + n; ++i) mean += x[i] / static_cast<double>(n);
    for (int64_t i = r; i < r + n; ++i) square += (x[i] - mean) * (x[i] - mean) / static_cast<double>(n);
    for (int64_t i = r; i < r + n; ++i) y[i] = (x[i] - mean) / std::sqrt(square + eps);
  }
  return y;
}

std::vector<Values> residual_rms_norm(const Inputs& in) {
  const Values h = plus(in[0], in[1]);
  Values y = normal(h, h.dim(-1), in.attrs.f64("eps"), false);
  for (int64_t i = 0; i < y.size(); ++i) y[i] *= in[2][i % h.dim(-1)] + in.attrs.f64("offset");
  return {y, h};
}

std::vector<Values> residual_layer_norm(const Inputs& in) {
  const Values h = plus(in[0], in[1]);
  Values y = normal(h, h.dim(-1), in.attrs.f64("eps"), true);
  for (int64_t i = 0; i < y.size(); ++i) y[i] = y[i] * in[2][i % h.dim(-1)] + (in.has(3) ? in[3][i % h.dim(-1)] : 0);
  return {y, h};
}

std::vector<Values> gated_rms_norm(const Inputs& in) {
  const int64_t h = in[0].dim(1), n = h / in.attrs.i64("groups");
  const bool after = in.attrs.boolean("norm_before_gate");
  auto gate = [&](int64_t i) { return in[1][i] / (1 + std::exp(-in[1][i])); };
  Values y = in[0];
  for (int64_t i = 0; !after && i < y.size(); ++i) y[i] *= gate(i);
  y = normal(y, n, in.attrs.f64("eps"), false);
  for (int64_t i = 0; i < y.size(); ++i) y[i] *= in[2][i % h] * (after ? gate(i) : 1);
  return {y};
}

Values linear(const Inputs& in) {
  const int64_t t = in[0].dim(0), k = in[0].dim(1), o = in[1].dim(0);
  Values y({t, o});
  for (int64_t i = 0; i < y.size(); ++i) {
    for (int64_t j = 0; j < k; ++j) y[i] += in[0][i / o * k + j] * in[1][i % o * k + j];
    if (in.in.size() == 3 && in.has(2)) y[i] += in[2][i % o];
  }
  return y;
}

std::vector<Values> linear_gelu(const Inputs& in) {
  Values y = linear(in);
  for (double& x : y.v)
    x = in.attrs.str("approximate") == "none"
            ? 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)))
            : 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
  return {y};
}

std::vector<Values> linear_swiglu(const Inputs& in) {
  const Values z = linear(in);
  const int64_t f = z.dim(1) / 2;
  const double alpha = in.attrs.f64("alpha"), limit = in.attrs.f64("limit");
  Values y({z.dim(0), f});
  for (int64_t i = 0; i < y.size(); ++i) {
    double g = z[i / f * 2 * f + i % f], u = z[i / f * 2 * f + f + i % f];
    if (limit > 0) {
      g = std::min(g, limit);
      u = std::min(std::max(u, -limit), limit);
    }
    y[i] = g / (1 + std::exp(-alpha * g)) * (u + in.attrs.f64("up_offset"));
  }
  return {y};
}

std::vector<Values> linear_cross_entropy(const Inputs& in) {
  Values z = linear(in), loss{Shape{}}, lse({in[0].dim(0)});
  const int64_t n = z.dim(1);
  const double cap = in.attrs.f64("softcap"), s = in.attrs.f64("label_smoothing");
  for (double& x : z.v) x = cap > 0 ? cap * std::tanh(x / cap) : x;
  for (int64_t t = 0; t < lse.size(); ++t) {
    double sum = 0, mean = 0;
    for (int64_t i = t * n; i < (t + 1) * n; ++i) {
      sum += std::exp(z[i]);
      mean += z[i] / static_cast<double>(n);
    }
    lse[t] = std::log(sum);
    if (in[3][t] != 0) loss[0] += in[3][t] * (lse[t] - (1 - s) * z[t * n + static_cast<int64_t>(in[2][t])] - s * mean);
  }
  return {loss, lse};
}

Values product(const Values& a, const Values& b, bool turned) {
  const int64_t m = a.dim(0), k = a.dim(1), n = turned ? b.dim(0) : b.dim(1);
  Values y({m, n});
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l) y[i * n + j] += a[i * k + l] * b[turned ? j * k + l : l * n + j];
  return y;
}

std::vector<Values> newton_schulz(const Inputs& in) {
  const bool tall = in[0].dim(0) > in[0].dim(1);
  Values x = tall ? swapped(in[0]) : in[0];
  double squares = 0;
  for (double v : x.v) squares += v * v;
  for (double& v : x.v) v /= std::sqrt(squares) + in.attrs.f64("eps");
  for (int64_t step = 0; step < in.attrs.i64("steps"); ++step) {
    const Values a = product(x, x, true);
    Values b = product(a, a, false);
    for (int64_t i = 0; i < b.size(); ++i) b[i] = in.attrs.f64("b") * a[i] + in.attrs.f64("c") * b[i];
    const Values bx = product(b, x, false);
    for (int64_t i = 0; i < x.size(); ++i) x[i] = in.attrs.f64("a") * x[i] + bx[i];
  }
  return {tall ? swapped(x) : x};
}

Case residual(std::string name, Shape s, core::Attrs attrs) {
  return {std::move(name), {real(s), real(s), real({s.back()}, 0.5, 1.5)}, std::move(attrs)};
}
Case residual_layer(std::string name, Shape s, bool bias) {
  return {std::move(name), {real(s), real(s), real({s.back()}, 0.5, 1.5), bias ? real({s.back()}) : absent()}, {}};
}
Case gate(std::string name, int64_t t, int64_t h, int64_t groups, bool after) {
  return {std::move(name),
          {real({t, h}), real({t, h}), real({h}, 0.5, 1.5)},
          {{"groups", groups}, {"norm_before_gate", after}}};
}
Case projected(std::string name, int64_t t, int64_t i, int64_t o, bool bias, core::Attrs attrs = {}) {
  return {std::move(name), {real({t, i}), real({o, i}), bias ? real({o}) : absent()}, std::move(attrs)};
}
Case losses(std::string name, int64_t t, core::Attrs attrs = {}) {
  Arg weights{{t}, [](Random& r, int64_t i) { return i % 3 == 2 ? 0.0 : r.uniform(0.5, 2); }};
  return {std::move(name),
          {real({t, 4}), real({7, 4}), index({t}, 7), std::move(weights).as(GESTALT_F32)},
          std::move(attrs)};
}
// Far from singular, so that the iteration does not amplify what 16 bits round away.
Case matrix(std::string name, int64_t m, int64_t n, int64_t steps = 5) {
  Arg a{{m, n}, [n](Random& r, int64_t i) { return (i / n == i % n ? 2.0 : 0.0) + r.uniform(-0.3, 0.3); }};
  return {std::move(name), {std::move(a).ordered()}, {{"steps", steps}}};
}

std::vector<Description> describe() {
  return {{.op = "core.residual_rms_norm",
           .reference = residual_rms_norm,
           .cases = {residual("small", {5, 7}, {}), residual("offset", {5, 7}, {{"offset", 1.0}, {"eps", 1e-3}}),
                     residual("three dimensions", {2, 3, 4}, {}), residual("empty", {0, 7}, {})},
           .any_rank = true},
          {.op = "core.residual_layer_norm",
           .reference = residual_layer_norm,
           .cases = {residual_layer("small", {5, 7}, true), residual_layer("no bias", {5, 7}, false),
                     residual_layer("empty", {0, 7}, true)},
           .any_rank = true},
          {.op = "core.gated_rms_norm",
           .reference = gated_rms_norm,
           .cases = {gate("small", 5, 6, 1, false), gate("groups", 5, 12, 3, false),
                     gate("groups, norm before gate", 5, 12, 3, true), gate("empty", 0, 6, 2, false)}},
          {.op = "core.linear_gelu",
           .reference = linear_gelu,
           .cases = {projected("small", 5, 3, 4, true), projected("no bias", 5, 3, 4, false),
                     projected("erf", 5, 3, 4, true, {{"approximate", std::string("none")}}),
                     projected("empty", 0, 3, 4, true)}},
          {.op = "core.linear_swiglu",
           .reference = linear_swiglu,
           .cases = {projected("small", 5, 3, 4, true), projected("no bias", 5, 3, 4, false),
                     projected("clamped", 5, 3, 4, true, {{"alpha", 1.702}, {"limit", 5.0}, {"up_offset", 1.0}}),
                     projected("empty", 0, 3, 4, true)},
           .loosen = 2},
          {
              .op = "core.linear_cross_entropy",
              .reference = linear_cross_entropy,
              .cases = {losses("small", 7), losses("softcap", 7, {{"softcap", 2.0}}),
                        losses("smoothed", 7, {{"label_smoothing", 0.1}}), losses("empty", 0)},
              .any_size = {2},
          },
          {.op = "core.newton_schulz",
           .reference = newton_schulz,
           .cases = {matrix("square", 6, 6), matrix("wide", 4, 9), matrix("tall", 9, 4), matrix("no steps", 5, 3, 0)},
           .loosen = 4,
           .any_size = {0}}};
}

const Family kFamily("composite", describe);

}  // namespace

}  // namespace gestalt::harness
