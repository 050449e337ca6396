#include <cmath>

#include "plugins/kernels_cpu/kernel_caller.h"
#include "tests/catch_compat.hpp"

namespace gestalt::kernels_cpu {
namespace {

constexpr int64_t kRows = 300, kWidth = 37;  // more rows than one chunk of the weight gradient
constexpr double kEps = 1e-5;

Reference rms_norm(int64_t width) {
  return [width](const std::vector<Values>& in) {
    std::vector<Values> out(2);
    const size_t n = static_cast<size_t>(width);
    for (size_t row = 0; row * n < in[0].size(); ++row) {
      double square = 0;
      for (size_t i = 0; i < n; ++i) square += in[0][row * n + i] * in[0][row * n + i];
      const double rstd = 1 / std::sqrt(square / static_cast<double>(n) + kEps);
      for (size_t i = 0; i < n; ++i) out[0].push_back(in[0][row * n + i] * rstd * in[1][i]);
      out[1].push_back(rstd);
    }
    return out;
  };
}

Reference layer_norm(int64_t width) {
  return [width](const std::vector<Values>& in) {
    std::vector<Values> out(3);
    const size_t n = static_cast<size_t>(width);
    for (size_t row = 0; row * n < in[0].size(); ++row) {
      double mean = 0, square = 0;
      for (size_t i = 0; i < n; ++i) mean += in[0][row * n + i] / static_cast<double>(n);
      for (size_t i = 0; i < n; ++i) square += std::pow(in[0][row * n + i] - mean, 2);
      const double rstd = 1 / std::sqrt(square / static_cast<double>(n) + kEps);
      for (size_t i = 0; i < n; ++i)
        out[0].push_back((in[0][row * n + i] - mean) * rstd * in[1][i] +
                         (in.size() > 2 && !in[2].empty() ? in[2][i] : 0));
      out[1].push_back(mean);
      out[2].push_back(rstd);
    }
    return out;
  };
}

// The analytic gradients in double; a small case is held against finite differences below.
std::vector<Values> layer_norm_gradient(const Values& x, const Values& w, const Values& dy, bool centred) {
  const size_t n = w.size();
  std::vector<Values> out{{}, Values(n), Values(n)};
  const auto statistics = (centred ? layer_norm : rms_norm)(static_cast<int64_t>(n))({x, w});
  for (size_t row = 0; row * n < x.size(); ++row) {
    const double mean = centred ? statistics[1][row] : 0, rstd = statistics[centred ? 2 : 1][row];
    double level = 0, along = 0;
    for (size_t i = 0; i < n; ++i) {
      level += centred ? dy[row * n + i] * w[i] / static_cast<double>(n) : 0;
      along += dy[row * n + i] * w[i] * (x[row * n + i] - mean) * rstd / static_cast<double>(n);
    }
    for (size_t i = 0; i < n; ++i) {
      const double normal = (x[row * n + i] - mean) * rstd;
      out[0].push_back((dy[row * n + i] * w[i] - level - normal * along) * rstd);
      out[1][i] += dy[row * n + i] * normal;
      out[2][i] += dy[row * n + i];
    }
  }
  return out;
}

TEST_CASE("rms_norm matches its formula") {
  check_op({"core.rms_norm",
            {{{3, 100, kWidth}, some_values(kRows * kWidth)}, {{kWidth}, some_values(kWidth, 2)}},
            {{{3, 100, kWidth}}, {{3, 100}, false, true}},
            {{"eps", kEps}},
            rms_norm(kWidth)});
  check_op({"core.rms_norm",
            {{{0, 4}, {}}, {{4}, some_values(4)}},
            {{{0, 4}}, {{0}, false, true}},
            {{"eps", kEps}},
            rms_norm(4)});
}

TEST_CASE("layer_norm matches its formula with and without bias") {
  for (bool bias : {true, false})
    check_op({"core.layer_norm",
              {{{kRows, kWidth}, some_values(kRows * kWidth)},
               {{kWidth}, some_values(kWidth, 2)},
               {{kWidth}, some_values(kWidth, 3), 0, false, !bias}},
              {{{kRows, kWidth}}, {{kRows}, false, true}, {{kRows}, false, true}},
              {{"eps", kEps}},
              layer_norm(kWidth),
              2});
}

TEST_CASE("norm gradients match the formula over many rows") {
  const Values x = some_values(kRows * kWidth), w = some_values(kWidth, 2), dy = some_values(kRows * kWidth, 3);
  const auto rms = rms_norm(kWidth)({x, w});
  check_op({"core.rms_norm_bwd",
            {{{kRows, kWidth}, x}, {{kWidth}, w}, {{kRows}, rms[1], 0, true}, {{kRows, kWidth}, dy}},
            {{{kRows, kWidth}}, {{kWidth}, true}},
            {},
            [](const std::vector<Values>& in) {
              auto g = layer_norm_gradient(in[0], in[1], in[3], false);
              g.pop_back();
              return g;
            },
            8});
  const auto centred = layer_norm(kWidth)({x, w});
  check_op({"core.layer_norm_bwd",
            {{{kRows, kWidth}, x},
             {{kWidth}, w},
             {{kRows}, centred[1], 0, true},
             {{kRows}, centred[2], 0, true},
             {{kRows, kWidth}, dy}},
            {{{kRows, kWidth}}, {{kWidth}, true}, {{kWidth}, true}},
            {},
            [](const std::vector<Values>& in) { return layer_norm_gradient(in[0], in[1], in[4], true); },
            8});
}

TEST_CASE("norm gradients match finite differences") {
  const Values x = some_values(15, 4), w = some_values(5, 5), b = some_values(5, 6), dy = some_values(15, 7);
  const auto near = [](const Values& got, const Values& want) {
    REQUIRE(got.size() == want.size());
    for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(want[i]).margin(1e-8));
  };
  Array x_(kF64, {3, 5}, x), w_(kF64, {5}, w), dy_(kF64, {3, 5}, dy), dx(kF64, {3, 5}), dw(kF64, {5}), db(kF64, {5});
  const Values none(3, 0);
  const auto rms = rms_norm(5)({x, w});
  Array rstd(kF64, {3}, rms[1]);
  call_kernel("core.rms_norm_bwd", {&x_, &w_, &rstd, &dy_}, {&dx, &dw}, {});
  near(dx.get(), finite_differences(rms_norm(5), {x, w}, 0, {dy, none}));
  near(dw.get(), finite_differences(rms_norm(5), {x, w}, 1, {dy, none}));
  const auto centred = layer_norm(5)({x, w, b});
  Array mean(kF64, {3}, centred[1]);
  rstd.set(centred[2]);
  call_kernel("core.layer_norm_bwd", {&x_, &w_, &mean, &rstd, &dy_}, {&dx, &dw, &db}, {});
  near(dx.get(), finite_differences(layer_norm(5), {x, w, b}, 0, {dy, none, none}));
  near(dw.get(), finite_differences(layer_norm(5), {x, w, b}, 1, {dy, none, none}));
  near(db.get(), finite_differences(layer_norm(5), {x, w, b}, 2, {dy, none, none}));
}

TEST_CASE("the weight gradient of no rows is zero") {
  Array x(kF32, {0, 4}), w(kF32, {4}), rstd(kF32, {0}), dy(kF32, {0, 4}), dx(kF32, {0, 4}), dw(kF32, {4});
  call_kernel("core.rms_norm_bwd", {&x, &w, &rstd, &dy}, {&dx, &dw}, {});
  CHECK(dw.get() == Values(4, 0));
}

TEST_CASE("a weight of the wrong size is refused with its shape") {
  Array x(kF32, {2, 4}), w(kF32, {3}), y(kF32, {2, 4}), rstd(kF32, {2});
  CHECK_THROWS_WITH(call_kernel("core.rms_norm", {&x, &w}, {&y, &rstd}, {{"eps", kEps}}),
                    Catch::Contains("got f32[3], expected 4"));
}

}  // namespace
}  // namespace gestalt::kernels_cpu
