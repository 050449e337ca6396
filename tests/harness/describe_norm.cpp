#include <cmath>

#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

Shape without_last(Shape s) {
  s.pop_back();
  return s;
}

std::vector<Values> rms_norm(const Inputs& in) {
  const Values &x = in[0], &w = in[1];
  const int64_t n = x.dim(-1);
  Values y(x.shape), rstd(without_last(x.shape));
  for (int64_t r = 0; r < rstd.size(); ++r) {
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += x[r * n + i] * x[r * n + i];
    rstd[r] = 1 / std::sqrt(squares / static_cast<double>(n) + in.attrs.f64("eps"));
    for (int64_t i = 0; i < n; ++i) y[r * n + i] = x[r * n + i] * rstd[r] * (w[i] + in.attrs.f64("offset"));
  }
  return {y, rstd};
}

// y = x s w with s = (mean x^2 + eps)^(-1/2): dx = s (w dy) - x s^3 / n sum(w dy x). w is the weight plus its offset.
std::vector<Values> rms_norm_bwd(const Inputs& in) {
  const Values &x = in[0], &rstd = in[2], &dy = in[3];
  const int64_t n = x.dim(-1);
  Values w = in[1];
  for (double& each : w.v) each += in.attrs.f64("offset");
  Values dx(x.shape), dw(w.shape);
  for (int64_t r = 0; r < rstd.size(); ++r) {
    const double s = rstd[r];
    double dot = 0;
    for (int64_t i = r * n; i < (r + 1) * n; ++i) dot += w[i - r * n] * dy[i] * x[i];
    for (int64_t i = r * n; i < (r + 1) * n; ++i) {
      dx[i] = s * w[i - r * n] * dy[i] - x[i] * s * s * s * dot / static_cast<double>(n);
      dw[i - r * n] += dy[i] * x[i] * s;
    }
  }
  return {dx, dw};
}

void moments(const Values& x, double eps, Values& mean, Values& rstd) {
  const int64_t n = x.dim(-1);
  for (int64_t r = 0; r < rstd.size(); ++r) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[r * n + i];
    mean[r] = sum / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) squares += (x[r * n + i] - mean[r]) * (x[r * n + i] - mean[r]);
    rstd[r] = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
  }
}

std::vector<Values> layer_norm(const Inputs& in) {
  const Values& x = in[0];
  const int64_t n = x.dim(-1);
  Values y(x.shape), mean(without_last(x.shape)), rstd(without_last(x.shape));
  moments(x, in.attrs.f64("eps"), mean, rstd);
  for (int64_t i = 0; i < x.size(); ++i)
    y[i] = (x[i] - mean[i / n]) * rstd[i / n] * in[1][i % n] + (in.has(2) ? in[2][i % n] : 0);
  return {y, mean, rstd};
}

// With z = (x - mean) s: dx = s (w dy - mean(w dy) - z mean(w dy z)).
std::vector<Values> layer_norm_bwd(const Inputs& in) {
  const Values &x = in[0], &w = in[1], &mean = in[2], &rstd = in[3], &dy = in[4];
  const int64_t n = x.dim(-1);
  Values dx(x.shape), dw(w.shape), db(w.shape);
  for (int64_t r = 0; r < rstd.size(); ++r) {
    double sum = 0, dot = 0;
    auto z = [&](int64_t i) { return (x[r * n + i] - mean[r]) * rstd[r]; };
    for (int64_t i = 0; i < n; ++i) {
      const double g = dy[r * n + i];
      sum += w[i] * g;
      dot += w[i] * g * z(i);
      dw[i] += g * z(i);
      db[i] += g;
    }
    for (int64_t i = 0; i < n; ++i)
      dx[r * n + i] = rstd[r] * (w[i] * dy[r * n + i] - (sum + z(i) * dot) / static_cast<double>(n));
  }
  return {dx, dw, db};
}

// One row whose elements are all equal has no variance, and its gradient only rounding errors.
Arg rows(Shape s) {
  const bool one = s.size() == 1;
  Arg a = real(std::move(s));
  a.plain = one;
  return a;
}

core::Attrs eps(double e) { return {{"eps", e}}; }

Case rms(std::string name, Shape s, double e = 1e-5, bool large = false) {
  return {std::move(name), {rows(s), real({s.back()}, 0.5, 1.5)}, eps(e), {}, large};
}
Case shifted(Case c, double offset) {
  c.name += ", offset";
  c.attrs.set("offset", offset);
  return c;
}
Case rms_bwd(std::string name, Shape s, bool large = false) {
  return {std::move(name),
          {rows(s), real({s.back()}, 0.5, 1.5), wide(without_last(s), 1, 2).ordered(), real(s)},
          {},
          [](std::vector<Values>& v) {
            const int64_t n = v[0].dim(-1);
            for (int64_t r = 0; r < v[2].size(); ++r) {
              double squares = 0;
              for (int64_t i = 0; i < n; ++i) squares += v[0][r * n + i] * v[0][r * n + i];
              v[2][r] = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
            }
          },
          large};
}
Case layer(std::string name, Shape s, bool bias, double e = 1e-5, bool large = false) {
  return {
      std::move(name), {rows(s), real({s.back()}, 0.5, 1.5), bias ? real({s.back()}) : absent()}, eps(e), {}, large};
}
Case layer_bwd(std::string name, Shape s, bool large = false) {
  return {std::move(name),
          {rows(s), real({s.back()}, 0.5, 1.5), wide(without_last(s)).ordered(), wide(without_last(s), 1, 2).ordered(),
           real(s)},
          {},
          [](std::vector<Values>& v) { moments(v[0], 1e-5, v[2], v[3]); },
          large};
}

std::vector<Description> describe() {
  return {
      {.op = "core.rms_norm",
       .reference = rms_norm,
       .cases = {rms("small", {5, 7}), rms("large eps", {5, 7}, 0.5), rms("three dimensions", {2, 3, 4}),
                 rms("one row", {9}), rms("empty", {0, 7}), shifted(rms("small", {5, 7}), 1),
                 rms("threads", {300, 257}, 1e-5, true), rms("whole chunks", {37, 768}, 1e-5, true),
                 rms("whole chunks, wide", {5, 2056}, 1e-5, true), rms("whole chunks, wider", {3, 6400}, 1e-5, true),
                 shifted(rms("whole chunks", {4, 104}, 1e-5, true), 1)},
       .loosen = 4,
       .any_rank = true,
       .grows = {{rms("", {300, 257}), rms("fewer rows", {11, 257})}},
       .speed = rms("speed", {2048, 512})},
      {.op = "core.rms_norm_bwd",
       .reference = rms_norm_bwd,
       .cases = {rms_bwd("small", {5, 7}), rms_bwd("three dimensions", {2, 3, 4}), rms_bwd("one row", {9}),
                 rms_bwd("empty", {0, 7}), shifted(rms_bwd("small", {5, 7}), 1), rms_bwd("threads", {300, 257}, true),
                 rms_bwd("whole chunks", {37, 768}, true), rms_bwd("whole chunks, wide", {5, 2056}, true),
                 rms_bwd("whole chunks, wider", {3, 6400}, true), shifted(rms_bwd("whole chunks", {4, 104}, true), 1)},
       .gradient = false,
       .loosen = 20,
       .grows = {{rms_bwd("", {300, 257}), rms_bwd("fewer rows", {11, 257})}},
       .speed = rms_bwd("speed", {2048, 512})},
      {.op = "core.layer_norm",
       .reference = layer_norm,
       .cases = {layer("small", {5, 7}, true), layer("no bias", {5, 7}, false), layer("large eps", {5, 7}, true, 0.5),
                 layer("three dimensions", {2, 3, 4}, true), layer("one row", {9}, true), layer("empty", {0, 7}, true),
                 layer("threads", {300, 257}, true, 1e-5, true), layer("whole chunks", {37, 768}, true, 1e-5, true),
                 layer("whole chunks, wide", {5, 2056}, false, 1e-5, true),
                 layer("whole chunks, wider", {3, 6400}, true, 1e-5, true)},
       .loosen = 10,
       .any_rank = true,
       .grows = {{layer("", {300, 257}, true), layer("fewer rows", {11, 257}, true)}},
       .speed = layer("speed", {2048, 512}, true)},
      {.op = "core.layer_norm_bwd",
       .reference = layer_norm_bwd,
       .cases = {layer_bwd("small", {5, 7}), layer_bwd("three dimensions", {2, 3, 4}), layer_bwd("one row", {9}),
                 layer_bwd("empty", {0, 7}), layer_bwd("threads", {300, 257}, true),
                 layer_bwd("whole chunks", {37, 768}, true), layer_bwd("whole chunks, wide", {5, 2056}, true),
                 layer_bwd("whole chunks, wider", {3, 6400}, true)},
       .gradient = false,
       .loosen = 20,
       .grows = {{layer_bwd("", {300, 257}), layer_bwd("fewer rows", {11, 257})}},
       .speed = layer_bwd("speed", {2048, 512})}};
}

const Family kFamily("norm", describe);

}  // namespace

}  // namespace gestalt::harness
