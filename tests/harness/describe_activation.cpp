#include <cmath>

#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

constexpr double kPi = 3.14159265358979323846;

double gelu(double x, const Inputs& in) {
  if (in.attrs.str("approximate") == "none") return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x)));
}
double gelu_slope(double x, const Inputs& in) {
  if (in.attrs.str("approximate") == "none")
    return 0.5 * (1 + std::erf(x / std::sqrt(2.0))) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * kPi);
  const double u = std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x), t = std::tanh(u);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / kPi) * (1 + 3 * 0.044715 * x * x);
}
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu(double x, const Inputs&) { return x * sigmoid(x); }
double silu_slope(double x, const Inputs&) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }
double relu(double x, const Inputs&) { return x > 0 ? x : 0; }
double relu_slope(double x, const Inputs&) { return x > 0 ? 1 : 0; }

using Curve = double (*)(double, const Inputs&);

// Away from the corner at zero, and far enough out that the curves saturate.
Arg spread(Shape s) {
  Arg a = away(std::move(s), 0.05);
  auto inner = a.fill;
  a.fill = [inner](Random& r, int64_t i) { return 5 * inner(r, i); };
  return a;
}

Description forward(const char* name, Curve f, std::vector<core::Attrs> variants) {
  Description d{.op = name,
                .reference =
                    [f](const Inputs& in) {
                      Values y(in[0].shape);
                      for (int64_t i = 0; i < y.size(); ++i) y[i] = f(in[0][i], in);
                      return std::vector<Values>{y};
                    },
                .cases = {}};
  for (const core::Attrs& a : variants) {
    d.cases.push_back({"small " + a.text(), {spread({3, 4, 5})}, a});
    d.cases.push_back({"scalar " + a.text(), {spread({})}, a});
    d.cases.push_back({"empty " + a.text(), {spread({0, 3})}, a});
    d.cases.push_back({"threads " + a.text(), {spread({40, 1031})}, a, {}, true});
  }
  d.any_rank = true;
  d.loosen = 4;
  d.grows = {{d.cases[3], {"fewer rows", {spread({7, 1031})}, variants[0]}}};
  d.speed = Case{"speed", {spread({1024, 1024})}, variants[0]};
  return d;
}

Description backward(const char* name, Curve slope, std::vector<core::Attrs> variants) {
  Description d{.op = name,
                .reference =
                    [slope](const Inputs& in) {
                      Values y(in[0].shape);
                      for (int64_t i = 0; i < y.size(); ++i) y[i] = slope(in[0][i], in) * in[1][i];
                      return std::vector<Values>{y};
                    },
                .cases = {}};
  for (const core::Attrs& a : variants) {
    d.cases.push_back({"small " + a.text(), {spread({3, 4, 5}), real({3, 4, 5})}, a});
    d.cases.push_back({"empty " + a.text(), {spread({0, 3}), real({0, 3})}, a});
    d.cases.push_back({"threads " + a.text(), {spread({40, 1031}), real({40, 1031})}, a, {}, true});
  }
  d.gradient = false;
  d.loosen = 4;
  d.grows = {{d.cases[2], {"fewer rows", {spread({7, 1031}), real({7, 1031})}, variants[0]}}};
  d.speed = Case{"speed", {spread({1024, 1024}), real({1024, 1024})}, variants[0]};
  return d;
}

std::vector<Values> swiglu(const Inputs& in) {
  Shape shape = in[0].shape;
  const int64_t f = shape.back() /= 2;
  Values y(shape);
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t row = i / f, col = i % f;
    y[i] = silu(in[0][row * 2 * f + col], in) * in[0][row * 2 * f + f + col];
  }
  return {y};
}

std::vector<Values> swiglu_bwd(const Inputs& in) {
  const int64_t f = in[0].dim(-1) / 2;
  Values dx(in[0].shape);
  for (int64_t i = 0; i < in[1].size(); ++i) {
    const int64_t g = i / f * 2 * f + i % f, u = g + f;
    dx[g] = in[1][i] * in[0][u] * silu_slope(in[0][g], in);
    dx[u] = in[1][i] * silu(in[0][g], in);
  }
  return {dx};
}

std::vector<Description> describe() {
  const std::vector<core::Attrs> gelus = {{{"approximate", std::string("tanh")}},
                                          {{"approximate", std::string("none")}}};
  return {forward("core.gelu", gelu, gelus),
          backward("core.gelu_bwd", gelu_slope, gelus),
          forward("core.silu", silu, {{}}),
          backward("core.silu_bwd", silu_slope, {{}}),
          forward("core.relu", relu, {{}}),
          backward("core.relu_bwd", relu_slope, {{}}),
          {.op = "core.swiglu",
           .reference = swiglu,
           .cases = {{"small", {spread({5, 14})}, {}},
                     {"three dimensions", {spread({2, 3, 6})}, {}},
                     {"empty", {spread({0, 6})}, {}},
                     {"threads", {spread({40, 1030})}, {}, {}, true}},
           .loosen = 4,
           .any_rank = true,
           .grows = {{{"", {spread({40, 1030})}, {}}, {"fewer rows", {spread({7, 1030})}, {}}}},
           .speed = Case{"speed", {spread({1024, 2048})}, {}}},
          {.op = "core.swiglu_bwd",
           .reference = swiglu_bwd,
           .cases = {{"small", {spread({5, 14}), real({5, 7})}, {}},
                     {"three dimensions", {spread({2, 3, 6}), real({2, 3, 3})}, {}},
                     {"empty", {spread({0, 6}), real({0, 3})}, {}},
                     {"threads", {spread({40, 1030}), real({40, 515})}, {}, {}, true}},
           .gradient = false,
           .loosen = 4,
           .grows = {{{"", {spread({40, 1030}), real({40, 515})}, {}},
                      {"fewer rows", {spread({7, 1030}), real({7, 515})}, {}}}},
           .speed = Case{"speed", {spread({1024, 2048}), real({1024, 1024})}, {}}}};
}

const Family kFamily("activation", describe);

}  // namespace

}  // namespace gestalt::harness
