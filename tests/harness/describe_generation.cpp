#include <algorithm>
#include <cmath>
#include <numeric>

#include "gestalt/philox.h"
#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

std::vector<Values> attention_cached(const Inputs& in) {
  const int64_t n = in[0].dim(1), g = in[1].dim(1), d = in[0].dim(2), e = in[2].dim(2), size = in[3].dim(1);
  const int64_t window = in.attrs.i64("window");
  const double cap = in.attrs.f64("softcap");
  const double scale = in.attrs.f64("scale") != 0 ? in.attrs.f64("scale") : 1 / std::sqrt(static_cast<double>(d));
  Values o({in[0].dim(0), n, e}), k_state = in[3], v_state = in[4];
  for (int64_t s = 0; s < in[6].size(); ++s) {
    const auto first = static_cast<int64_t>(in[5][s]), last = static_cast<int64_t>(in[5][s + 1]);
    const auto length = static_cast<int64_t>(in[6][s]);
    // The row of a token in a state of `width` numbers a head.
    auto row = [&](int64_t position, int64_t group, int64_t width) {
      const auto block = static_cast<int64_t>(in[7][s * in[7].dim(1) + position / size]);
      return ((block * size + position % size) * g + group) * width;
    };
    for (int64_t t = first; t < last; ++t)
      for (int64_t j = 0; j < g; ++j) {
        for (int64_t i = 0; i < d; ++i) k_state[row(length - last + t, j, d) + i] = in[1][(t * g + j) * d + i];
        for (int64_t i = 0; i < e; ++i) v_state[row(length - last + t, j, e) + i] = in[2][(t * g + j) * e + i];
      }
    for (int64_t t = first; t < last; ++t)
      for (int64_t h = 0; h < n; ++h) {
        const int64_t position = length - last + t, from = window > 0 ? std::max<int64_t>(0, position - window + 1) : 0;
        std::vector<double> p;
        double total = in.has(8) ? std::exp(in[8][h]) : 0;
        for (int64_t q = from; q <= position; ++q) {
          double x = 0;
          for (int64_t i = 0; i < d; ++i) x += in[0][(t * n + h) * d + i] * k_state[row(q, h / (n / g), d) + i];
          x *= scale;
          if (cap > 0) x = cap * std::tanh(x / cap);
          p.push_back(std::exp(x));
          total += p.back();
        }
        for (int64_t q = from; q <= position; ++q)
          for (int64_t i = 0; i < e; ++i)
            o[(t * n + h) * e + i] += p[static_cast<size_t>(q - from)] / total * v_state[row(q, h / (n / g), e) + i];
      }
  }
  return {o, k_state, v_state};
}

std::vector<Values> sample(const Inputs& in) {
  const int64_t rows = in[0].dim(0), width = in[0].dim(1);
  const int64_t vocab = in.attrs.i64("vocab") ? in.attrs.i64("vocab") : width;
  Values ids({rows}), logprob({rows});
  for (int64_t s = 0; s < rows; ++s) {
    std::vector<double> x;
    for (int64_t i = 0; i < vocab; ++i) x.push_back(in[0][s * width + i] + (in.has(6) ? in[6][s * width + i] : 0));
    std::vector<int64_t> order(x.size());
    std::iota(order.begin(), order.end(), 0);
    auto at = [&](int64_t i) { return x[static_cast<size_t>(i)]; };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return at(a) > at(b); });
    const double best = at(order[0]), temperature = in[1][s];
    double all = 0;
    for (int64_t i = 0; i < vocab; ++i) all += std::exp(at(i) - best);
    int64_t chosen = order[0];
    if (temperature > 0) {
      if (in[2][s] > 0 && in[2][s] < static_cast<double>(vocab)) order.resize(static_cast<size_t>(in[2][s]));
      std::vector<double> p;
      for (int64_t i : order) p.push_back(std::exp((at(i) - best) / temperature));
      const double total = std::accumulate(p.begin(), p.end(), 0.0);
      double sum = 0;
      size_t kept = 0;
      while (kept < p.size() && (kept == 0 || (sum < in[3][s] * total && p[kept] >= in[4][s]))) sum += p[kept++];
      auto word = [&](int64_t i) { return static_cast<uint32_t>(static_cast<int64_t>(in[5][4 * s + i])); };
      const uint32_t bits = philox_token(word(0) | uint64_t{word(1)} << 32, 0, word(3), word(2), 0, 0).word[0];
      double u = static_cast<double>(philox_uniform(bits)) * sum;
      chosen = order[kept - 1];
      for (size_t i = 0; i < kept; ++i)
        if ((u -= p[i]) < 0) {
          chosen = order[i];
          break;
        }
    }
    ids[s] = static_cast<double>(chosen);
    logprob[s] = at(chosen) - best - std::log(all);
  }
  return {ids, logprob};
}

struct Sizes {
  int64_t t, n, g, d, e, blocks, size;
};
core::Attrs how(double scale = 0, int64_t window = 0, double softcap = 0) {
  return {{"scale", scale}, {"window", window}, {"softcap", softcap}};
}
// table: the blocks of each sequence, row by row.
Case cached(std::string name, Sizes z, std::vector<double> starts, std::vector<double> lengths, std::vector<double> table,
            core::Attrs attrs, bool sinks = false) {
  const auto s = static_cast<int64_t>(lengths.size()), count = static_cast<int64_t>(starts.size());
  const int64_t width = s ? static_cast<int64_t>(table.size()) / s : 3;
  Case c{std::move(name),
         {real({z.t, z.n, z.d}), real({z.t, z.g, z.d}), real({z.t, z.g, z.e}), real({z.blocks, z.size, z.g, z.d}),
          real({z.blocks, z.size, z.g, z.e}), listed({count}, std::move(starts), GESTALT_I32),
          listed({s}, std::move(lengths), GESTALT_I32), listed({s, width}, std::move(table), GESTALT_I32)},
         std::move(attrs)};
  if (sinks) c.in.push_back(real({z.n}));
  return c;
}

Case sampled(std::string name, int64_t rows, int64_t width, double temperature, int64_t top_k, double top_p,
             double min_p, int64_t vocab = 0, bool bias = false) {
  auto each = [rows](double x, uint32_t dtype) {
    return listed({rows}, std::vector<double>(static_cast<size_t>(rows), x), dtype);
  };
  Case c{std::move(name),
         {real({rows, width}, -3, 3).ordered().constant(), each(temperature, GESTALT_F32),
          each(static_cast<double>(top_k), GESTALT_I32), each(top_p, GESTALT_F32), each(min_p, GESTALT_F32),
          index({rows, 4}, 1000).ordered()},
         {{"vocab", vocab}}};
  if (bias) c.in.push_back(real({rows, width}, -2, 2).constant());
  return c;
}

std::vector<Description> describe() {
  const Sizes small{4, 4, 2, 4, 4, 5, 2};
  return {{.op = "core.attention_cached",
           .reference = attention_cached,
           .cases = {cached("first tokens and one more", small, {0, 3, 4}, {3, 4}, {4, 0, 1, 3}, how()),
                     cached("later tokens", small, {0, 3, 4}, {6, 3}, {4, 0, 2, 1, 3, 0}, how()),
                     cached("one key head, other value size", {3, 3, 1, 3, 5, 4, 2}, {0, 3}, {5}, {3, 1, 2}, how()),
                     cached("scale, window and softcap", {4, 2, 2, 4, 4, 7, 2}, {0, 1, 4}, {7, 5}, {4, 0, 2, 1, 3, 5, 6, 0}, how(0.7, 3, 2)),
                     cached("blocks before the window are gone", {1, 2, 2, 4, 4, 6, 2}, {0, 1}, {7}, {-1, -1, 2, 1}, how(0, 3)),
                     cached("sinks", small, {0, 3, 4}, {6, 3}, {4, 0, 2, 1, 3, 0}, how(), true),
                     cached("a sequence without new tokens", {2, 2, 2, 3, 3, 5, 4}, {0, 0, 2}, {0, 3}, {0, 2}, how()),
                     cached("uncovered tokens", {4, 2, 2, 3, 3, 5, 4}, {1, 3}, {6}, {0, 2}, how()),
                     cached("empty", {0, 2, 2, 4, 4, 3, 2}, {0}, {}, {}, how())},
           .gradient = false,
           .loosen = 10,
           .any_size = {7},
           .grows = {{cached("", {6, 4, 2, 8, 8, 9, 4}, {0, 4, 6}, {12, 9}, {4, 0, 2, 1, 3, 5}, how()),
                      cached("fewer tokens", {2, 4, 2, 8, 8, 9, 4}, {0, 1, 2}, {12, 9}, {4, 0, 2, 1, 3, 5}, how())}},
           .bad_values = {{5, 5, "a sequence beyond the tokens"},
                          {6, 0, "a length below the new tokens"},
                          {6, 5, "a length beyond the blocks"},
                          {7, 5, "a block that does not exist"},
                          {7, -1, "a negative block"}},
           .speed = cached("speed", {8, 8, 8, 64, 64, 128, 16}, {0, 1, 2, 3, 4, 5, 6, 7, 8}, std::vector<double>(8, 256),
                           [] {
                             std::vector<double> table(128);
                             std::iota(table.begin(), table.end(), 0);
                             return table;
                           }(),
                           how())},
          {.op = "core.sample",
           .reference = sample,
           .cases = {sampled("greedy", 3, 7, 0, 0, 1, 0), sampled("all tokens", 5, 7, 1, 0, 1, 0),
                     sampled("temperature", 5, 7, 0.6, 0, 1, 0), sampled("top k", 5, 9, 1.3, 3, 1, 0),
                     sampled("top p", 5, 9, 1, 0, 0.7, 0), sampled("min p", 5, 9, 1, 0, 1, 0.3),
                     sampled("all of it", 6, 33, 0.9, 12, 0.9, 0.05), sampled("top k of one", 4, 9, 2, 1, 1, 0),
                     sampled("padded vocabulary", 4, 9, 2, 0, 1, 0, 6), sampled("bias", 4, 9, 1, 0, 0.9, 0, 8, true),
                     sampled("no rows", 0, 9, 1, 0, 1, 0), sampled("threads", 40, 500, 1, 50, 0.95, 0.01)},
           .gradient = false,
           .loosen = 10,
           .any_size = {0},
           .grows = {{sampled("", 40, 100, 1, 50, 0.95, 0.01), sampled("fewer rows", 3, 100, 1, 50, 0.95, 0.01)}},
           .speed = sampled("speed", 16, 32000, 1, 50, 0.95, 0)}};
}

const Family kFamily("generation", describe);

}  // namespace

}  // namespace gestalt::harness
