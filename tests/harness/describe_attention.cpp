#include <cmath>

#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

std::vector<Values> rotary(const Inputs& in) {
  const Values& x = in[0];
  const int64_t n = x.dim(1), d = x.dim(2), asked = in.attrs.i64("dims"), dims = asked ? asked : d;
  const bool interleaved = in.attrs.boolean("interleaved");
  Values y = x;
  for (int64_t row = 0; row < x.dim(0) * n; ++row) {
    for (int64_t i = 0; i < dims / 2; ++i) {
      const double angle = (in.attrs.boolean("inverse") ? -1 : 1) * in[1][row / n] *
                           std::pow(in.attrs.f64("theta"), -2.0 * static_cast<double>(i) / static_cast<double>(dims));
      const int64_t a = row * d + (interleaved ? 2 * i : i), b = row * d + (interleaved ? 2 * i + 1 : i + dims / 2);
      y[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
      y[b] = x[a] * std::sin(angle) + x[b] * std::cos(angle);
    }
  }
  return {y};
}

double scale_of(const Inputs& in) {
  const double s = in.attrs.f64("scale");
  return s != 0 ? s : 1 / std::sqrt(static_cast<double>(in[0].dim(2)));
}

// Calls f(query token, head, first key, last key + 1); segments of seq_starts, causal or not.
template <class F>
void each_query(const Inputs& in, F f) {
  for (int64_t s = 0; s + 1 < in[3].size(); ++s) {
    const auto first = static_cast<int64_t>(in[3][s]), last = static_cast<int64_t>(in[3][s + 1]);
    for (int64_t t = first; t < last; ++t)
      for (int64_t h = 0; h < in[0].dim(1); ++h) f(t, h, first, in.attrs.boolean("causal") ? t + 1 : last);
  }
}

double score(const Inputs& in, int64_t t, int64_t h, int64_t key) {
  const int64_t n = in[0].dim(1), g = in[1].dim(1), d = in[0].dim(2);
  double sum = 0;
  for (int64_t i = 0; i < d; ++i) sum += in[0][(t * n + h) * d + i] * in[1][(key * g + h / (n / g)) * d + i];
  return sum * scale_of(in);
}

std::vector<Values> attention(const Inputs& in) {
  const int64_t n = in[0].dim(1), g = in[1].dim(1), e = in[2].dim(2);
  Values o({in[0].dim(0), n, e}), lse({in[0].dim(0), n});
  each_query(in, [&](int64_t t, int64_t h, int64_t first, int64_t last) {
    double total = 0;
    for (int64_t k = first; k < last; ++k) total += std::exp(score(in, t, h, k));
    lse[t * n + h] = std::log(total);
    for (int64_t k = first; k < last; ++k) {
      const double p = std::exp(score(in, t, h, k)) / total;
      for (int64_t i = 0; i < e; ++i) o[(t * n + h) * e + i] += p * in[2][(k * g + h / (n / g)) * e + i];
    }
  });
  return {o, lse};
}

std::vector<Values> attention_bwd(const Inputs& in) {
  const int64_t n = in[0].dim(1), g = in[1].dim(1), d = in[0].dim(2), e = in[2].dim(2);
  Values dq(in[0].shape), dk(in[1].shape), dv(in[2].shape);
  each_query(in, [&](int64_t t, int64_t h, int64_t first, int64_t last) {
    const int64_t row = t * n + h;
    double delta = 0;
    for (int64_t i = 0; i < e; ++i) delta += in[4][row * e + i] * in[6][row * e + i];
    for (int64_t k = first; k < last; ++k) {
      const int64_t key = k * g + h / (n / g);
      const double p = std::exp(score(in, t, h, k) - in[5][row]);
      double dp = 0;
      for (int64_t i = 0; i < e; ++i) {
        dp += in[6][row * e + i] * in[2][key * e + i];
        dv[key * e + i] += p * in[6][row * e + i];
      }
      const double ds = p * (dp - delta) * scale_of(in);
      for (int64_t i = 0; i < d; ++i) {
        dq[row * d + i] += ds * in[1][key * d + i];
        dk[key * d + i] += ds * in[0][row * d + i];
      }
    }
  });
  return {dq, dk, dv};
}

struct Heads {
  int64_t t, n, g, d, e;
};
core::Attrs how(bool causal, double scale = 0) { return {{"causal", causal}, {"scale", scale}}; }

Case queries(std::string name, Heads h, std::vector<double> starts, core::Attrs attrs, bool large = false) {
  const auto count = static_cast<int64_t>(starts.size());
  return {std::move(name),
          {real({h.t, h.n, h.d}), real({h.t, h.g, h.d}), real({h.t, h.g, h.e}),
           listed({count}, std::move(starts), GESTALT_I32)},
          std::move(attrs),
          {},
          large};
}

// o and lse as the forward makes them.
Case queries_bwd(std::string name, Heads h, std::vector<double> starts, core::Attrs attrs, bool large = false) {
  Case c = queries(std::move(name), h, std::move(starts), attrs, large);
  c.in.push_back(real({h.t, h.n, h.e}).ordered());
  c.in.push_back(wide({h.t, h.n}).ordered());
  c.in.push_back(real({h.t, h.n, h.e}));
  c.derive = [attrs](std::vector<Values>& v) {
    const Inputs in{v, std::vector<bool>(v.size(), true), attrs, GESTALT_F64};
    const std::vector<Values> out = attention(in);
    v[4] = out[0];
    v[5] = out[1];
  };
  return c;
}

core::Attrs turn(int64_t dims, bool interleaved, bool inverse, double theta = 1e4) {
  return {{"dims", dims}, {"interleaved", interleaved}, {"inverse", inverse}, {"theta", theta}};
}
Case turned(std::string name, Shape s, core::Attrs attrs, uint32_t type = GESTALT_I32, bool large = false) {
  return {std::move(name), {real(s), index({s[0]}, 2000, type)}, std::move(attrs), {}, large};
}

std::vector<Description> describe() {
  std::vector<Case> forward = {queries("small", {7, 2, 2, 4, 4}, {0, 7}, how(true)),
                               queries("not causal", {7, 2, 2, 4, 4}, {0, 7}, how(false)),
                               queries("segments", {9, 2, 2, 4, 4}, {0, 4, 5, 9, 9, 9}, how(true)),
                               queries("segments, not causal", {9, 2, 2, 4, 4}, {0, 4, 5, 9}, how(false)),
                               queries("grouped", {6, 6, 2, 3, 3}, {0, 2, 6}, how(true)),
                               queries("one key head", {5, 3, 1, 3, 3}, {0, 5}, how(true)),
                               queries("other value size", {6, 2, 1, 3, 5}, {0, 6}, how(true)),
                               queries("scale", {6, 2, 2, 4, 4}, {0, 6}, how(true, 0.3)),
                               queries("uncovered tokens", {8, 2, 2, 3, 3}, {1, 3, 6}, how(true)),
                               queries("empty", {0, 2, 2, 4, 4}, {0, 0}, how(true)),
                               queries("tiles", {333, 2, 1, 8, 8}, {0, 300, 333}, how(true), true),
                               queries("tiles, not causal", {333, 2, 1, 8, 8}, {0, 300, 333}, how(false), true)};
  std::vector<Case> backward = {queries_bwd("small", {7, 2, 2, 4, 4}, {0, 7}, how(true)),
                                queries_bwd("segments", {9, 2, 2, 4, 4}, {0, 4, 5, 9, 9, 9}, how(true)),
                                queries_bwd("not causal", {9, 2, 2, 4, 4}, {0, 4, 9}, how(false)),
                                queries_bwd("grouped", {6, 6, 2, 3, 3}, {0, 2, 6}, how(true)),
                                queries_bwd("other value size", {6, 2, 1, 3, 5}, {0, 6}, how(true, 0.3)),
                                queries_bwd("uncovered tokens", {8, 2, 2, 3, 3}, {1, 3, 6}, how(true)),
                                queries_bwd("empty", {0, 2, 2, 4, 4}, {0, 0}, how(true)),
                                queries_bwd("tiles", {333, 2, 1, 8, 8}, {0, 300, 333}, how(true), true),
                                queries_bwd("tiles, not causal", {333, 2, 1, 8, 8}, {0, 300, 333}, how(false), true)};
  return {{.op = "core.rotary",
           .reference = rotary,
           .cases = {turned("half", {5, 2, 8}, turn(0, false, false)),
                     turned("interleaved", {5, 2, 8}, turn(0, true, false)),
                     turned("inverse", {5, 2, 8}, turn(0, false, true)),
                     turned("partial", {5, 2, 8}, turn(4, false, false)),
                     turned("partial, interleaved", {5, 2, 10}, turn(6, true, true, 500)),
                     turned("i64 positions", {5, 2, 8}, turn(0, false, false), GESTALT_I64),
                     turned("empty", {0, 2, 8}, turn(0, false, false)),
                     turned("threads", {300, 4, 32}, turn(0, false, false), GESTALT_I32, true)},
           .loosen = 10,
           .any_size = {0},
           .grows = {{turned("", {300, 4, 32}, turn(0, false, false)),
                      turned("fewer tokens", {9, 4, 32}, turn(0, false, false))}},
           .speed = turned("speed", {1024, 8, 64}, turn(0, false, false))},
          {.op = "core.attention",
           .reference = attention,
           .cases = forward,
           .loosen = 10,
           .any_size = {2, 3},
           .grows = {{queries("", {333, 2, 1, 8, 8}, {0, 300, 333}, how(true)),
                      queries("fewer tokens", {40, 2, 1, 8, 8}, {0, 10, 40}, how(true))}},
           .bad_values = {{3, 8, "a segment beyond the tokens"}, {3, -1, "a segment that runs backwards"}},
           .speed = queries("speed", {512, 8, 8, 64, 64}, {0, 512}, how(true)),
           .flops = 2.0 * 512 * 512 * 8 * 64},
          {.op = "core.attention_bwd",
           .reference = attention_bwd,
           .cases = backward,
           .gradient = false,
           .loosen = 40,
           .any_size = {3},
           .grows = {{queries_bwd("", {333, 2, 1, 8, 8}, {0, 300, 333}, how(true)),
                      queries_bwd("fewer tokens", {40, 2, 1, 8, 8}, {0, 10, 40}, how(true))}},
           .bad_values = {{3, 8, "a segment beyond the tokens"}},
           .speed = queries_bwd("speed", {512, 8, 8, 64, 64}, {0, 512}, how(true)),
           .flops = 5.0 * 512 * 512 * 8 * 64}};
}

const Family kFamily("attention", describe);

}  // namespace

}  // namespace gestalt::harness
