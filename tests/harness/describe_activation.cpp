#include <algorithm>
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

double relu2(double x, const Inputs&) { return x > 0 ? x * x : 0; }
double relu2_slope(double x, const Inputs&) { return x > 0 ? 2 * x : 0; }
double softplus(double x, const Inputs&) { return std::log(1 + std::exp(x)); }
double softplus_slope(double x, const Inputs&) { return sigmoid(x); }
double softcap(double x, const Inputs& in) { return in.attrs.f64("cap") * std::tanh(x / in.attrs.f64("cap")); }
double softcap_slope(double x, const Inputs& in) {
  const double t = std::tanh(x / in.attrs.f64("cap"));
  return 1 - t * t;
}

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

// A gated activation y = f(gate, up) and its two slopes.
struct Gate {
  double (*value)(double g, double u, const Inputs&);
  double (*by_gate)(double g, double u, const Inputs&);
  double (*by_up)(double g, double u, const Inputs&);
};

// g held below the limit, u within it.
double held(double x, const Inputs& in, bool both) {
  const double limit = in.attrs.f64("limit");
  if (limit == 0) return x;
  return both ? std::min(std::max(x, -limit), limit) : std::min(x, limit);
}
const Gate kSwiglu = {[](double g, double u, const Inputs& in) {
                        const double h = held(g, in, false);
                        return h * sigmoid(in.attrs.f64("alpha") * h) * (held(u, in, true) + in.attrs.f64("up_offset"));
                      },
                      [](double g, double u, const Inputs& in) {
                        const double a = in.attrs.f64("alpha"), s = sigmoid(a * g);
                        if (held(g, in, false) != g) return 0.0;
                        return (s + a * g * s * (1 - s)) * (held(u, in, true) + in.attrs.f64("up_offset"));
                      },
                      [](double g, double u, const Inputs& in) {
                        const double h = held(g, in, false);
                        return held(u, in, true) != u ? 0.0 : h * sigmoid(in.attrs.f64("alpha") * h);
                      }};
const Gate kGeglu = {[](double g, double u, const Inputs& in) { return gelu(g, in) * u; },
                     [](double g, double u, const Inputs& in) { return gelu_slope(g, in) * u; },
                     [](double g, double, const Inputs& in) { return gelu(g, in); }};
const Gate kReglu = {[](double g, double u, const Inputs& in) { return relu(g, in) * u; },
                     [](double g, double u, const Inputs& in) { return relu_slope(g, in) * u; },
                     [](double g, double, const Inputs& in) { return relu(g, in); }};

Description gated(const char* name, const Gate* gate, std::vector<core::Attrs> variants) {
  Description d{.op = name,
                .reference =
                    [gate](const Inputs& in) {
                      Shape shape = in[0].shape;
                      const int64_t f = shape.back() /= 2;
                      Values y(shape);
                      for (int64_t i = 0; i < y.size(); ++i) {
                        const int64_t g = i / f * 2 * f + i % f;
                        y[i] = gate->value(in[0][g], in[0][g + f], in);
                      }
                      return std::vector<Values>{y};
                    },
                .cases = {}};
  for (const core::Attrs& a : variants) {
    d.cases.push_back({"small " + a.text(), {spread({5, 14})}, a});
    d.cases.push_back({"three dimensions " + a.text(), {spread({2, 3, 6})}, a});
    d.cases.push_back({"empty " + a.text(), {spread({0, 6})}, a});
    d.cases.push_back({"threads " + a.text(), {spread({40, 1030})}, a, {}, true});
    d.cases.push_back({"whole chunks " + a.text(), {spread({7, 96})}, a, {}, true});
  }
  d.loosen = 4;
  d.any_rank = true;
  d.grows = {{d.cases[3], {"fewer rows", {spread({7, 1030})}, variants[0]}}};
  d.speed = Case{"speed", {spread({1024, 2048})}, variants[0]};
  return d;
}

Description gated_bwd(const char* name, const Gate* gate, std::vector<core::Attrs> variants) {
  Description d{.op = name,
                .reference =
                    [gate](const Inputs& in) {
                      const int64_t f = in[0].dim(-1) / 2;
                      Values dx(in[0].shape);
                      for (int64_t i = 0; i < in[1].size(); ++i) {
                        const int64_t g = i / f * 2 * f + i % f;
                        dx[g] = in[1][i] * gate->by_gate(in[0][g], in[0][g + f], in);
                        dx[g + f] = in[1][i] * gate->by_up(in[0][g], in[0][g + f], in);
                      }
                      return std::vector<Values>{dx};
                    },
                .cases = {}};
  for (const core::Attrs& a : variants) {
    d.cases.push_back({"small " + a.text(), {spread({5, 14}), real({5, 7})}, a});
    d.cases.push_back({"three dimensions " + a.text(), {spread({2, 3, 6}), real({2, 3, 3})}, a});
    d.cases.push_back({"empty " + a.text(), {spread({0, 6}), real({0, 3})}, a});
    d.cases.push_back({"threads " + a.text(), {spread({40, 1030}), real({40, 515})}, a, {}, true});
    d.cases.push_back({"whole chunks " + a.text(), {spread({7, 96}), real({7, 48})}, a, {}, true});
  }
  d.gradient = false;
  d.loosen = 4;
  d.grows = {{d.cases[3], {"fewer rows", {spread({7, 1030}), real({7, 515})}, variants[0]}}};
  d.speed = Case{"speed", {spread({1024, 2048}), real({1024, 1024})}, variants[0]};
  return d;
}

std::vector<Description> describe() {
  const std::vector<core::Attrs> gelus = {{{"approximate", std::string("tanh")}},
                                          {{"approximate", std::string("none")}}};
  const std::vector<core::Attrs> clamped = {{}, {{"alpha", 1.702}, {"limit", 1.75}, {"up_offset", 1.0}}};
  return {forward("core.gelu", gelu, gelus),
          backward("core.gelu_bwd", gelu_slope, gelus),
          forward("core.silu", silu, {{}}),
          backward("core.silu_bwd", silu_slope, {{}}),
          forward("core.relu", relu, {{}}),
          backward("core.relu_bwd", relu_slope, {{}}),
          forward("core.relu2", relu2, {{}}),
          backward("core.relu2_bwd", relu2_slope, {{}}),
          forward("core.softplus", softplus, {{}}),
          backward("core.softplus_bwd", softplus_slope, {{}}),
          forward("core.softcap", softcap, {{{"cap", 3.0}}, {{"cap", 30.0}}}),
          backward("core.softcap_bwd", softcap_slope, {{{"cap", 3.0}}, {{"cap", 30.0}}}),
          gated("core.swiglu", &kSwiglu, clamped),
          gated_bwd("core.swiglu_bwd", &kSwiglu, clamped),
          gated("core.geglu", &kGeglu, gelus),
          gated_bwd("core.geglu_bwd", &kGeglu, gelus),
          gated("core.reglu", &kReglu, {{}}),
          gated_bwd("core.reglu_bwd", &kReglu, {{}})};
}

const Family kFamily("activation", describe);

}  // namespace

}  // namespace gestalt::harness
