#include <algorithm>
#include <cmath>

#include "gestalt/philox.h"
#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

double scale_of(const Inputs& in) {
  const double s = in.attrs.f64("scale");
  return s != 0 ? s : 1 / std::sqrt(static_cast<double>(in[0].dim(2)));
}

// Where sinks, bias, keys and seed are: after seq_starts, or after the backward's own inputs.
size_t sinks_of(const Inputs& in) { return in.in.size() > 4 && in[4].ndim() == 3 ? 7 : 4; }

// What dropout multiplies the weight of a key with.
double kept(const Inputs& in, int64_t t, int64_t h, int64_t first, int64_t key) {
  const double p = in.attrs.f64("p");
  if (p == 0) return 1;
  const Values &keys = in[sinks_of(in) + 2], &seed = in[sinks_of(in) + 3];
  auto word = [](double w) { return static_cast<uint32_t>(static_cast<int64_t>(w)); };
  auto wide = [&](int64_t i) { return word(seed[i]) | uint64_t{word(seed[i + 1])} << 32; };
  const uint32_t column = word(keys[2 * first + 1]) + static_cast<uint32_t>(key - first);
  const PhiloxBlock b =
      philox_scores(wide(0), wide(2), static_cast<uint32_t>(in.attrs.i64("use")), word(keys[2 * t]),
                    word(keys[2 * t + 1]), static_cast<uint32_t>(in.attrs.i64("head0") + h), column / 4);
  return (b.word[column % 4] >> 8) < philox_threshold(p) ? 0 : 1 / (1 - p);
}

// Calls f(query token, head, first key, last key + 1, first of the segment) for segments of seq_starts, causal or not,
// and the window.
template <class F>
void each_query(const Inputs& in, F f) {
  const int64_t window = in.attrs.i64("window");
  for (int64_t s = 0; s + 1 < in[3].size(); ++s) {
    const auto first = static_cast<int64_t>(in[3][s]), last = static_cast<int64_t>(in[3][s + 1]);
    for (int64_t t = first; t < last; ++t)
      for (int64_t h = 0; h < in[0].dim(1); ++h) {
        const int64_t end = in.attrs.boolean("causal") ? t + 1 : last;
        f(t, h, window ? std::max(first, t - window + 1) : first, window ? std::min(end, t + window) : end, first);
      }
  }
}

int64_t distance(const Inputs& in, int64_t t, int64_t key) { return key - t + in[sinks_of(in) + 1].dim(1) / 2; }

// The score and its derivative by q k.
double score(const Inputs& in, int64_t t, int64_t h, int64_t key, double* slope = nullptr) {
  const int64_t n = in[0].dim(1), g = in[1].dim(1), d = in[0].dim(2);
  const double cap = in.attrs.f64("softcap");
  double sum = 0;
  for (int64_t i = 0; i < d; ++i) sum += in[0][(t * n + h) * d + i] * in[1][(key * g + h / (n / g)) * d + i];
  sum *= scale_of(in);
  const double bent = cap > 0 ? std::tanh(sum / cap) : 0;
  if (slope) *slope = scale_of(in) * (1 - bent * bent);
  if (cap > 0) sum = cap * bent;
  const size_t bias = sinks_of(in) + 1;
  return in.has(bias) ? sum + in[bias][h * in[bias].dim(1) + distance(in, t, key)] : sum;
}

std::vector<Values> attention(const Inputs& in) {
  const int64_t n = in[0].dim(1), g = in[1].dim(1), e = in[2].dim(2);
  Values o({in[0].dim(0), n, e}), lse({in[0].dim(0), n});
  each_query(in, [&](int64_t t, int64_t h, int64_t first, int64_t last, int64_t segment) {
    double total = in.has(sinks_of(in)) ? std::exp(in[sinks_of(in)][h]) : 0;
    for (int64_t k = first; k < last; ++k) total += std::exp(score(in, t, h, k));
    lse[t * n + h] = std::log(total);
    for (int64_t k = first; k < last; ++k) {
      const double p = std::exp(score(in, t, h, k)) / total * kept(in, t, h, segment, k);
      for (int64_t i = 0; i < e; ++i) o[(t * n + h) * e + i] += p * in[2][(k * g + h / (n / g)) * e + i];
    }
  });
  return {o, lse};
}

std::vector<Values> attention_bwd(const Inputs& in) {
  const int64_t n = in[0].dim(1), g = in[1].dim(1), d = in[0].dim(2), e = in[2].dim(2);
  const bool sinks = in.has(7), bias = in.has(8);
  Values dq(in[0].shape), dk(in[1].shape), dv(in[2].shape);
  Values dsinks(sinks ? in[7].shape : Shape{0}), dbias(bias ? in[8].shape : Shape{0, 1});
  each_query(in, [&](int64_t t, int64_t h, int64_t first, int64_t last, int64_t segment) {
    const int64_t row = t * n + h;
    double delta = 0;
    for (int64_t i = 0; i < e; ++i) delta += in[4][row * e + i] * in[6][row * e + i];
    if (sinks) dsinks[h] -= std::exp(in[7][h] - in[5][row]) * delta;
    for (int64_t k = first; k < last; ++k) {
      const int64_t key = k * g + h / (n / g);
      const double keep = kept(in, t, h, segment, k);
      double dp = 0, slope = 0;
      const double p = std::exp(score(in, t, h, k, &slope) - in[5][row]);
      for (int64_t i = 0; i < e; ++i) {
        dp += keep * in[6][row * e + i] * in[2][key * e + i];
        dv[key * e + i] += keep * p * in[6][row * e + i];
      }
      if (bias) dbias[h * in[8].dim(1) + distance(in, t, k)] += p * (dp - delta);
      const double ds = p * (dp - delta) * slope;
      for (int64_t i = 0; i < d; ++i) {
        dq[row * d + i] += ds * in[1][key * d + i];
        dk[key * d + i] += ds * in[0][row * d + i];
      }
    }
  });
  return {dq, dk, dv, dsinks, dbias};
}

struct Heads {
  int64_t t, n, g, d, e;
};
core::Attrs how(bool causal, double scale = 0, int64_t window = 0, double softcap = 0) {
  return {{"causal", causal}, {"scale", scale},    {"window", window},   {"softcap", softcap},
          {"p", 0.0},         {"use", int64_t{0}}, {"head0", int64_t{0}}};
}
struct Extra {
  bool sinks = false;
  int64_t reach = 0;  // of the bias; 0: none
  bool drops = false;
};
core::Attrs dropped(core::Attrs attrs) {
  attrs.set("p", 0.3);
  attrs.set("use", int64_t{5});
  attrs.set("head0", int64_t{2});
  return attrs;
}
// Appends sinks, bias, keys and seed.
void add_extra(Case& c, Heads h, const Extra& extra) {
  if (!extra.sinks && !extra.reach && !extra.drops) return;
  c.in.push_back(extra.sinks ? real({h.n}) : absent());
  c.in.push_back(extra.reach ? real({h.n, 2 * extra.reach + 1}) : absent());
  if (!extra.drops) return;
  c.in.push_back(index({h.t, 2}, 5000));
  c.in.push_back(listed({4}, {-5, 7, 12, 1}, GESTALT_I32));
}

Case queries(std::string name, Heads h, std::vector<double> starts, core::Attrs attrs, bool large = false,
             Extra extra = {}) {
  const auto count = static_cast<int64_t>(starts.size());
  Case c{std::move(name),
         {real({h.t, h.n, h.d}), real({h.t, h.g, h.d}), real({h.t, h.g, h.e}),
          listed({count}, std::move(starts), GESTALT_I32)},
         std::move(attrs),
         {},
         large};
  add_extra(c, h, extra);
  return c;
}

// o and lse as the forward makes them.
Case queries_bwd(std::string name, Heads h, std::vector<double> starts, core::Attrs attrs, bool large = false,
                 Extra extra = {}) {
  Case c = queries(std::move(name), h, std::move(starts), attrs, large);
  c.in.push_back(real({h.t, h.n, h.e}).ordered());
  c.in.push_back(wide({h.t, h.n}).ordered());
  c.in.push_back(real({h.t, h.n, h.e}));
  add_extra(c, h, extra);
  c.derive = [attrs](std::vector<Values>& v) {
    Inputs in{{v.begin(), v.begin() + 4}, {true, true, true, true}, attrs, GESTALT_F64};
    for (size_t i = 7; i < v.size(); ++i) {
      in.in.push_back(v[i]);
      in.present.push_back(v[i].size() > 0);
    }
    const std::vector<Values> out = attention(in);
    v[4] = out[0];
    v[5] = out[1];
  };
  return c;
}

std::vector<Description> describe() {
  std::vector<Case> forward = {
      queries("small", {7, 2, 2, 4, 4}, {0, 7}, how(true)),
      queries("not causal", {7, 2, 2, 4, 4}, {0, 7}, how(false)),
      queries("segments", {9, 2, 2, 4, 4}, {0, 4, 5, 9, 9, 9}, how(true)),
      queries("segments, not causal", {9, 2, 2, 4, 4}, {0, 4, 5, 9}, how(false)),
      queries("grouped", {6, 6, 2, 3, 3}, {0, 2, 6}, how(true)),
      queries("one key head", {5, 3, 1, 3, 3}, {0, 5}, how(true)),
      queries("other value size", {6, 2, 1, 3, 5}, {0, 6}, how(true)),
      queries("scale", {6, 2, 2, 4, 4}, {0, 6}, how(true, 0.3)),
      queries("window", {9, 2, 1, 3, 3}, {0, 7, 9}, how(true, 0, 3)),
      queries("window of one", {5, 2, 1, 3, 3}, {0, 5}, how(true, 0, 1)),
      queries("window, not causal", {9, 2, 1, 3, 3}, {0, 7, 9}, how(false, 0, 3)),
      queries("softcap", {6, 2, 2, 4, 4}, {0, 6}, how(true, 2, 0, 1.5)),
      queries("sinks", {7, 4, 2, 3, 3}, {0, 3, 7}, how(true), false, {true, 0}),
      queries("bias", {7, 4, 2, 3, 3}, {0, 3, 7}, how(false), false, {false, 4}),
      queries("all of it", {7, 4, 2, 3, 5}, {0, 5, 7}, how(true, 1, 3, 2), false, {true, 6}),
      queries("dropout", {9, 4, 2, 3, 3}, {0, 2, 9}, dropped(how(true)), false, {.drops = true}),
      queries("all of it, dropout", {9, 4, 2, 3, 3}, {0, 2, 9}, dropped(how(false, 1, 5, 2)), false, {true, 8, true}),
      queries("uncovered tokens", {8, 2, 2, 3, 3}, {1, 3, 6}, how(true)),
      queries("empty", {0, 2, 2, 4, 4}, {0, 0}, how(true)),
      queries("tiles", {333, 2, 1, 8, 8}, {0, 300, 333}, how(true), true),
      queries("tiles, not causal", {333, 2, 1, 8, 8}, {0, 300, 333}, how(false), true),
      queries("tiles, window", {700, 2, 1, 8, 8}, {0, 650, 700}, how(true, 0, 300), true),
      queries("tiles, all of it", {333, 2, 1, 8, 8}, {0, 300, 333}, how(true, 0, 100, 2), true, {true, 310}),
      queries("heads of 64", {90, 4, 2, 64, 64}, {3, 75, 80, 88}, how(true), true),
      queries("heads of 64, not causal", {90, 2, 1, 64, 64}, {0, 70, 90}, how(false), true),
      queries("heads of 64, window", {200, 2, 2, 64, 64}, {0, 190, 200}, how(true, 0, 70), true),
      queries("heads of 128", {150, 2, 1, 128, 128}, {0, 129, 150}, how(true), true)};
  std::vector<Case> backward = {
      queries_bwd("small", {7, 2, 2, 4, 4}, {0, 7}, how(true)),
      queries_bwd("segments", {9, 2, 2, 4, 4}, {0, 4, 5, 9, 9, 9}, how(true)),
      queries_bwd("not causal", {9, 2, 2, 4, 4}, {0, 4, 9}, how(false)),
      queries_bwd("grouped", {6, 6, 2, 3, 3}, {0, 2, 6}, how(true)),
      queries_bwd("other value size", {6, 2, 1, 3, 5}, {0, 6}, how(true, 0.3)),
      queries_bwd("window", {9, 2, 1, 3, 3}, {0, 7, 9}, how(true, 0, 3)),
      queries_bwd("window, not causal", {9, 2, 1, 3, 3}, {0, 7, 9}, how(false, 0, 3)),
      queries_bwd("softcap", {6, 2, 2, 4, 4}, {0, 6}, how(true, 2, 0, 1.5)),
      queries_bwd("sinks", {7, 4, 2, 3, 3}, {0, 3, 7}, how(true), false, {true, 0}),
      queries_bwd("bias", {7, 4, 2, 3, 3}, {0, 3, 7}, how(false), false, {false, 4}),
      queries_bwd("all of it", {7, 4, 2, 3, 5}, {0, 5, 7}, how(true, 1, 3, 2), false, {true, 6}),
      queries_bwd("dropout", {9, 4, 2, 3, 3}, {0, 2, 9}, dropped(how(true)), false, {.drops = true}),
      queries_bwd("all of it, dropout", {9, 4, 2, 3, 3}, {0, 2, 9}, dropped(how(false, 1, 5, 2)), false,
                  {true, 8, true}),
      queries_bwd("tiles, dropout", {333, 2, 1, 8, 8}, {0, 300, 333}, dropped(how(true)), true, {.drops = true}),
      queries_bwd("uncovered tokens", {8, 2, 2, 3, 3}, {1, 3, 6}, how(true)),
      queries_bwd("empty", {0, 2, 2, 4, 4}, {0, 0}, how(true)),
      queries_bwd("tiles", {333, 2, 1, 8, 8}, {0, 300, 333}, how(true), true),
      queries_bwd("tiles, not causal", {333, 2, 1, 8, 8}, {0, 300, 333}, how(false), true),
      queries_bwd("tiles, all of it", {333, 2, 1, 8, 8}, {0, 300, 333}, how(true, 0, 100, 2), true, {true, 310}),
      queries_bwd("heads of 64", {90, 4, 2, 64, 64}, {3, 75, 80, 88}, how(true), true),
      queries_bwd("heads of 64, not causal", {90, 2, 1, 64, 64}, {0, 70, 90}, how(false), true),
      queries_bwd("heads of 64, window", {200, 2, 2, 64, 64}, {0, 190, 200}, how(true, 0, 70), true),
      queries_bwd("heads of 128", {150, 2, 1, 128, 128}, {0, 129, 150}, how(true), true)};
  return {{.op = "core.attention",
           .reference = attention,
           .cases = forward,
           .loosen = 10,
           .inner_roundings = {{"gestalt.flash", 3}},
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
           .inner_roundings = {{"gestalt.flash", 6}},
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
