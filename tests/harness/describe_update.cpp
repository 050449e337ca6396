#include <algorithm>
#include <cmath>

#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

// The vectors of an update: what is stepped (master weights if there are any) and the number of its segment.
template <class F>
void each_element(const Values& segments, F f) {
  for (int64_t s = 0; s < segments.dim(0); ++s)
    for (int64_t i = 0; i < static_cast<int64_t>(segments[2 * s + 1]); ++i)
      f(s, static_cast<int64_t>(segments[2 * s]) + i);
}

// The inputs that the op writes, in order, absent ones left out.
std::vector<Values> present_of(const Inputs& in, std::vector<size_t> which) {
  std::vector<Values> out;
  for (size_t i : which)
    if (in.has(i)) out.push_back(in[i]);
  return out;
}

std::vector<Values> adamw(const Inputs& given) {
  Inputs in = given;
  Values &param = in.in[0], &master = in.in[1], &m = in.in[3], &v = in.in[4];
  const double clip = in[8][0], lr = in[7][0], step = in[7][1];
  const double b1 = in.attrs.f64("beta1"), b2 = in.attrs.f64("beta2");
  if (clip >= 0) {
    each_element(in[5], [&](int64_t s, int64_t i) {
      const double decay = in[6][2 * s], rate = lr * in[6][2 * s + 1], g = clip * in[2][i];
      double& w = in.has(1) ? master[i] : param[i];
      m[i] = b1 * m[i] + (1 - b1) * g;
      v[i] = b2 * v[i] + (1 - b2) * g * g;
      const double mean = m[i] / (1 - std::pow(b1, step)), square = v[i] / (1 - std::pow(b2, step));
      w -= rate * (mean / (std::sqrt(square) + in.attrs.f64("eps")) + decay * w);
      param[i] = w;
    });
  }
  return present_of(in, {0, 1, 3, 4});
}

std::vector<Values> sgd(const Inputs& given) {
  Inputs in = given;
  Values &param = in.in[0], &master = in.in[1], &buffer = in.in[3];
  const double clip = in[7][0], mu = in.attrs.f64("momentum");
  if (clip >= 0) {
    each_element(in[4], [&](int64_t s, int64_t i) {
      double& w = in.has(1) ? master[i] : param[i];
      const double g = clip * in[2][i] + in[5][2 * s] * w;
      double d = g;
      if (in.has(3)) {
        buffer[i] = mu * buffer[i] + g;
        d = in.attrs.boolean("nesterov") ? g + mu * buffer[i] : buffer[i];
      }
      w -= in[6][0] * in[5][2 * s + 1] * d;
      param[i] = w;
    });
  }
  return present_of(in, {0, 1, 3});
}

std::vector<Values> lion(const Inputs& given) {
  Inputs in = given;
  Values &param = in.in[0], &master = in.in[1], &m = in.in[3];
  const double clip = in[7][0], b1 = in.attrs.f64("beta1"), b2 = in.attrs.f64("beta2");
  if (clip >= 0) {
    each_element(in[4], [&](int64_t s, int64_t i) {
      double& w = in.has(1) ? master[i] : param[i];
      const double g = clip * in[2][i], mixed = b1 * m[i] + (1 - b1) * g;
      w -= in[6][0] * in[5][2 * s + 1] * ((mixed > 0) - (mixed < 0) + in[5][2 * s] * w);
      m[i] = b2 * m[i] + (1 - b2) * g;
      param[i] = w;
    });
  }
  return present_of(in, {0, 1, 3});
}

std::vector<Values> ema(const Inputs& in) {
  Values y(in[0].shape);
  const double decay = in.attrs.f64("decay");
  for (int64_t i = 0; i < y.size(); ++i) y[i] = decay * in[0][i] + (1 - decay) * in[1][i];
  return {y};
}

std::vector<Values> loss_scale(const Inputs& in) {
  Values scale = in[0], good = in[1];
  good[0] += 1;
  if (in[2][0] == 0) {
    scale[0] *= in.attrs.f64("backoff");
    good[0] = 0;
  } else if (good[0] >= static_cast<double>(in.attrs.i64("interval"))) {
    scale[0] *= in.attrs.f64("growth");
    good[0] = 0;
  }
  scale[0] = std::min(std::max(scale[0], in.attrs.f64("min")), in.attrs.f64("max"));
  return {scale, good};
}

std::vector<Values> norm_clip_scale(const Inputs& in) {
  Values clip{Shape{}}, norm{Shape{}};
  const double limit = in.attrs.f64("max_norm"), inv_tokens = in[1][2];
  norm[0] = std::sqrt(in[0][0]) * inv_tokens;
  clip[0] = (limit > 0 ? std::min(1.0, limit / (norm[0] + 1e-6)) : 1) * inv_tokens;
  return {clip, norm};
}

Arg scalars(double step) { return listed({8}, {0.01, step, 0.125, 1, 0, 0, 0, 0}, GESTALT_F32); }

// Two segments with a gap between them, which no update may touch.
std::vector<Arg> tail(int64_t n, double step, double clip) {
  const auto a = static_cast<double>(n / 3), b = static_cast<double>(n - n / 3 - 2);
  return {listed({2, 2}, {0, a, a + 1, b}, GESTALT_I64), listed({2, 2}, {0.1, 1, 0, 0.5}, GESTALT_F32), scalars(step),
          listed({}, {clip}, GESTALT_F32)};
}

Case adam_step(std::string name, int64_t n, bool master, double step, double clip, bool large = false) {
  Case c{std::move(name),
         {real({n}), master ? wide({n}) : absent(), wide({n}), wide({n}), wide({n}, 0.01, 1)},
         {{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}},
         {},
         large};
  for (Arg& a : tail(n, step, clip)) c.in.push_back(std::move(a));
  return c;
}

Case sgd_step(std::string name, int64_t n, bool master, bool momentum, bool nesterov, double clip, bool large = false) {
  Case c{std::move(name),
         {real({n}), master ? wide({n}) : absent(), wide({n}), momentum ? wide({n}) : absent()},
         {{"momentum", momentum ? 0.9 : 0.0}, {"nesterov", nesterov}},
         {},
         large};
  for (Arg& a : tail(n, 3, clip)) c.in.push_back(std::move(a));
  return c;
}

Case lion_step(std::string name, int64_t n, bool master, double clip, bool large = false) {
  Case c{std::move(name),
         {real({n}), master ? wide({n}) : absent(), wide({n}), wide({n})},
         {{"beta1", 0.9}, {"beta2", 0.99}},
         {},
         large};
  for (Arg& a : tail(n, 3, clip)) c.in.push_back(std::move(a));
  return c;
}
Case scaled(std::string name, double scale, double good, bool finite) {
  return {std::move(name),
          {listed({}, {scale}, GESTALT_F32), listed({}, {good}, GESTALT_I32),
           listed({}, {finite ? 1.0 : 0.0}, GESTALT_BOOL)},
          {{"interval", int64_t{5}}, {"max", 1024.0}, {"growth", 2.0}}};
}

Case clipped(std::string name, double squares, double limit) {
  return {std::move(name), {listed({}, {squares}, kWide), scalars(1)}, {{"max_norm", limit}}};
}

std::vector<Description> describe() {
  return {{.op = "core.adamw_update",
           .reference = adamw,
           .cases = {adam_step("small", 40, false, 5, 0.5), adam_step("master", 40, true, 5, 0.5),
                     adam_step("first step", 40, true, 1, 1), adam_step("skipped", 40, true, 5, -1),
                     adam_step("threads", 40001, true, 100, 0.5, true)},
           .gradient = false,
           .loosen = 10,
           .grows = {},
           .speed = adam_step("speed", 1 << 20, true, 5, 0.5)},
          {.op = "core.sgd_update",
           .reference = sgd,
           .cases = {sgd_step("plain", 40, false, false, false, 0.5), sgd_step("momentum", 40, false, true, false, 0.5),
                     sgd_step("nesterov", 40, true, true, true, 0.5), sgd_step("skipped", 40, true, true, false, -1),
                     sgd_step("threads", 40001, true, true, false, 0.5, true)},
           .gradient = false,
           .loosen = 4,
           .speed = sgd_step("speed", 1 << 20, true, true, false, 0.5)},
          {.op = "core.lion_update",
           .reference = lion,
           .cases = {lion_step("small", 40, false, 0.5), lion_step("master", 40, true, 0.5),
                     lion_step("skipped", 40, true, -1), lion_step("threads", 40001, true, 0.5, true)},
           .gradient = false,
           .loosen = 4,
           .speed = lion_step("speed", 1 << 20, true, 0.5)},
          {.op = "core.ema_update",
           .reference = ema,
           .cases = {{"small", {real({3, 5}), real({3, 5})}, {{"decay", 0.9}}},
                     {"wide average", {wide({7}), real({7})}, {{"decay", 0.999}}},
                     {"empty", {real({0}), real({0})}, {{"decay", 0.9}}},
                     {"threads", {real({40, 1031}), real({40, 1031})}, {{"decay", 0.9}}, {}, true}},
           .gradient = false,
           .loosen = 4,
           .any_rank = true},
          {.op = "core.loss_scale_update",
           .reference = loss_scale,
           .cases = {scaled("good", 64, 2, true), scaled("grows", 64, 4, true), scaled("shrinks", 64, 3, false),
                     scaled("at the top", 1024, 4, true), scaled("at the bottom", 1, 3, false)},
           .dtypes = {GESTALT_F32},
           .gradient = false},
          {.op = "core.norm_clip_scale",
           .reference = norm_clip_scale,
           .cases = {clipped("no limit", 64, 0), clipped("below the limit", 64, 10), clipped("clipped", 64, 0.25)},
           .gradient = false}};
}

const Family kFamily("update", describe);

}  // namespace

}  // namespace gestalt::harness
