#include <cmath>

#include "plugins/kernels_cpu/kernel_caller.h"
#include "tests/catch_compat.hpp"

namespace gestalt::kernels_cpu {
namespace {

struct Sizes {
  int64_t n, g, d, e;
  std::vector<int64_t> starts;
  bool causal;
  double scale;
  int64_t tokens() const { return starts.back(); }
};

Reference attention(const Sizes& z) {
  return [z](const std::vector<Values>& in) {
    const double scale = z.scale == 0 ? 1 / std::sqrt(static_cast<double>(z.d)) : z.scale;
    std::vector<Values> out{Values(static_cast<size_t>(z.tokens() * z.n * z.e)),
                            Values(static_cast<size_t>(z.tokens() * z.n))};
    for (size_t s = 0; s + 1 < z.starts.size(); ++s)
      for (int64_t t = z.starts[s]; t < z.starts[s + 1]; ++t)
        for (int64_t h = 0; h < z.n; ++h) {
          const int64_t kv = h / (z.n / z.g), last = z.causal ? t + 1 : z.starts[s + 1];
          Values p;
          double sum = 0;
          for (int64_t u = z.starts[s]; u < last; ++u) {
            double score = 0;
            for (int64_t i = 0; i < z.d; ++i)
              score += in[0][static_cast<size_t>((t * z.n + h) * z.d + i)] *
                       in[1][static_cast<size_t>((u * z.g + kv) * z.d + i)];
            p.push_back(std::exp(scale * score));
            sum += p.back();
          }
          for (int64_t u = z.starts[s]; u < last; ++u)
            for (int64_t i = 0; i < z.e; ++i)
              out[0][static_cast<size_t>((t * z.n + h) * z.e + i)] +=
                  p[static_cast<size_t>(u - z.starts[s])] / sum * in[2][static_cast<size_t>((u * z.g + kv) * z.e + i)];
          out[1][static_cast<size_t>(t * z.n + h)] = std::log(sum);
        }
    return out;
  };
}

std::vector<Attr> attrs_of(const Sizes& z) { return {{"causal", z.causal}, {"scale", z.scale}}; }

std::vector<Input> inputs_of(const Sizes& z) {
  const int64_t t = z.tokens();
  return {{{t, z.n, z.d}, some_values(t * z.n * z.d, 1)},
          {{t, z.g, z.d}, some_values(t * z.g * z.d, 2)},
          {{t, z.g, z.e}, some_values(t * z.g * z.e, 3)},
          {{static_cast<int64_t>(z.starts.size())}, Values(z.starts.begin(), z.starts.end()), kI32}};
}

void check_forward(const Sizes& z) {
  check_op({"core.attention",
            inputs_of(z),
            {{{z.tokens(), z.n, z.e}}, {{z.tokens(), z.n}, false, true}},
            attrs_of(z),
            attention(z),
            2});
}

TEST_CASE("attention stays inside its segment, with and without the causal mask") {
  for (bool causal : {true, false}) {
    check_forward({4, 4, 5, 5, {0, 3, 3, 10}, causal, 0});
    check_forward({6, 2, 8, 3, {0, 17, 17}, causal, 0.3});
  }
}

TEST_CASE("attention goes over several tiles of queries and keys") {
  check_forward({1, 1, 4, 4, {0, 600}, true, 2});
  check_forward({1, 1, 4, 4, {0, 300, 530}, false, 2});
}

TEST_CASE("attention gradients match finite differences") {
  for (bool causal : {true, false}) {
    const Sizes z{4, 2, 3, 2, {0, 3, 7}, causal, 0.7};
    auto in = inputs_of(z);
    std::vector<Values> values;
    for (const Input& input : in) values.push_back(input.values);
    const Values grad = some_values(z.tokens() * z.n * z.e, 9);
    const auto forward = attention(z)(values);
    in.push_back({{z.tokens(), z.n, z.e}, forward[0]});
    in.push_back({{z.tokens(), z.n}, forward[1], 0, true});
    in.push_back({{z.tokens(), z.n, z.e}, grad});
    // The inputs differ by dtype, o and lse with them: rounding them is part of the error.
    check_op({"core.attention_bwd",
              in,
              {{{z.tokens(), z.n, z.d}}, {{z.tokens(), z.g, z.d}}, {{z.tokens(), z.g, z.e}}},
              attrs_of(z),
              [z](const std::vector<Values>& x) {
                std::vector<Values> out;
                const Values none(x[5].size());
                for (size_t i = 0; i < 3; ++i)
                  out.push_back(finite_differences(attention(z), {x[0], x[1], x[2], x[3]}, i, {x[6], none}));
                return out;
              },
              30});
  }
}

TEST_CASE("attention gradients add up over tiles") {
  const Sizes z{2, 1, 4, 4, {0, 330, 400}, true, 1};
  const auto in = inputs_of(z);
  std::vector<Values> values;
  for (const Input& input : in) values.push_back(input.values);
  const auto forward = attention(z)(values);
  const int64_t t = z.tokens();
  const Values grad = some_values(t * 8, 9);
  Array q(kF64, {t, 2, 4}, values[0]), k(kF64, {t, 1, 4}, values[1]), v(kF64, {t, 1, 4}, values[2]),
      starts(kI32, {3}, values[3]);
  Array o(kF64, {t, 2, 4}, forward[0]), lse(kF64, {t, 2}, forward[1]), d_o(kF64, {t, 2, 4}, grad);
  Array dq(kF64, {t, 2, 4}), dk(kF64, {t, 1, 4}), dv(kF64, {t, 1, 4});
  call_kernel("core.attention_bwd", {&q, &k, &v, &starts, &o, &lse, &d_o}, {&dq, &dk, &dv}, attrs_of(z));
  // A directional derivative per input covers all elements at once.
  const Values* inputs[] = {&values[0], &values[1], &values[2]};
  Array* gradients[] = {&dq, &dk, &dv};
  for (size_t i = 0; i < 3; ++i) {
    const Values along = some_values(static_cast<int64_t>(inputs[i]->size()), 20 + i), got = gradients[i]->get();
    double expected = 0, total = 0;
    for (int side : {-2, -1, 1, 2}) {
      auto x = values;
      for (size_t j = 0; j < x[i].size(); ++j) x[i][j] += side * 1e-3 * along[j];
      const auto y = attention(z)(x);
      double value = 0;
      for (size_t j = 0; j < grad.size(); ++j) value += grad[j] * y[0][j];
      expected += value * (side == -2 ? 1 : side == -1 ? -8 : side == 1 ? 8 : -1) / 12e-3;
    }
    for (size_t j = 0; j < got.size(); ++j) total += got[j] * along[j];
    CHECK(total == Approx(expected).epsilon(1e-7));
  }
}

TEST_CASE("tokens outside all segments get zeros") {
  Array q(kF32, {4, 1, 2}, some_values(8)), k(kF32, {4, 1, 2}, some_values(8, 2)),
      v(kF32, {4, 1, 2}, some_values(8, 3));
  Array starts(kI32, {2}, {1, 3}), o(kF32, {4, 1, 2}), lse(kF32, {4, 1});
  call_kernel("core.attention", {&q, &k, &v, &starts}, {&o, &lse}, {{"causal", true}, {"scale", 0.0}});
  CHECK(o.get()[0] == 0);
  CHECK(o.get()[7] == 0);
  CHECK(lse.get()[3] == 0);
  CHECK(o.get()[2] == v.get()[2]);
}

TEST_CASE("segments that run backwards are refused with their value") {
  Array q(kF32, {4, 1, 2}), starts(kI32, {3}, {0, 3, 2}), o(kF32, {4, 1, 2}), lse(kF32, {4, 1});
  CHECK_THROWS_WITH(
      call_kernel("core.attention", {&q, &q, &q, &starts}, {&o, &lse}, {{"causal", true}, {"scale", 0.0}}),
      Catch::Contains("got 2 at 2"));
}

Reference rotary(int64_t n, int64_t d, int64_t dims, bool interleaved, bool inverse, double theta) {
  return [=](const std::vector<Values>& in) {
    Values y = in[0];
    for (size_t t = 0; t < in[1].size(); ++t)
      for (int64_t h = 0; h < n; ++h)
        for (int64_t i = 0; i < dims / 2; ++i) {
          const double angle = (inverse ? -1 : 1) * in[1][t] *
                               std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(dims));
          const size_t base = (t * static_cast<size_t>(n) + static_cast<size_t>(h)) * static_cast<size_t>(d);
          const size_t a = base + static_cast<size_t>(interleaved ? 2 * i : i);
          const size_t b = base + static_cast<size_t>(interleaved ? 2 * i + 1 : i + dims / 2);
          y[a] = in[0][a] * std::cos(angle) - in[0][b] * std::sin(angle);
          y[b] = in[0][a] * std::sin(angle) + in[0][b] * std::cos(angle);
        }
    return std::vector<Values>{y};
  };
}

TEST_CASE("rotary turns pairs by position, in both pairings, wholly or in part, and back") {
  Values positions;
  for (int i = 0; i < 50; ++i) positions.push_back(i * i * 3);
  for (bool interleaved : {false, true})
    for (bool inverse : {false, true})
      for (int64_t dims : {0, 8})
        check_op({"core.rotary",
                  {{{50, 3, 12}, some_values(50 * 36)}, {{50}, positions, kI32}},
                  {{{50, 3, 12}}},
                  {{"theta", 1e4}, {"dims", dims}, {"interleaved", interleaved}, {"inverse", inverse}},
                  rotary(3, 12, dims == 0 ? 12 : dims, interleaved, inverse, 1e4)});
}

}  // namespace
}  // namespace gestalt::kernels_cpu
