#include <algorithm>
#include <cmath>

#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

template <class F>
Reference binary(F f) {
  return [f](const Inputs& in) {
    const Values &a = in[0], &b = in[1];
    Values y(a.shape);
    for (int64_t i = 0; i < a.size(); ++i) y[i] = f(a[i], b[i % b.size()]);  // b repeats over leading dimensions
    return std::vector<Values>{y};
  };
}

// Same shape, b as a row, b as the last dimension, b a scalar; empty; several blocks; work for two threads.
std::vector<Case> binary_cases(double least) {
  auto b = [=](Shape s) { return least > 0 ? away(std::move(s), least) : real(std::move(s)); };
  return {{"same shape", {real({3, 4, 5}), b({3, 4, 5})}, {}},
          {"rows", {real({3, 4, 5}), b({4, 5})}, {}},
          {"last dimension", {real({3, 4, 5}), b({5})}, {}},
          {"scalar b", {real({3, 5}), b({})}, {}},
          {"scalars", {real({}), b({})}, {}},
          {"empty", {real({0, 4}), b({0, 4})}, {}},
          {"empty rows", {real({0, 4}), b({4})}, {}},
          {"blocks", {real({3, 700}), b({700})}, {}, {}, true},
          {"rows of whole chunks", {real({5, 48}), b({48})}, {}, {}, true},
          {"threads", {real({40, 1031}), b({40, 1031})}, {}, {}, true}};
}

Description binary_op(const char* name, Reference reference, double least, std::vector<uint32_t> dtypes) {
  Description d{
      .op = name, .reference = std::move(reference), .cases = binary_cases(least), .dtypes = std::move(dtypes)};
  d.any_rank = true;
  d.grows = {
      {d.cases.back(), {"fewer rows", {real({7, 1031}), least > 0 ? away({7, 1031}, least) : real({7, 1031})}, {}}}};
  d.speed = Case{"speed", {real({1024, 1024}), away({1024, 1024}, 0.25)}, {}};
  return d;
}

Description unary_op(const char* name, double (*f)(double, const Inputs&), core::Attrs attrs) {
  Description d{.op = name,
                .reference =
                    [f](const Inputs& in) {
                      Values y(in[0].shape);
                      for (int64_t i = 0; i < y.size(); ++i) y[i] = f(in[0][i], in);
                      return std::vector<Values>{y};
                    },
                .cases = {{"small", {real({3, 4, 5})}, attrs},
                          {"scalar", {real({})}, attrs},
                          {"empty", {real({4, 0})}, attrs},
                          {"threads", {real({40, 1031})}, attrs, {}, true}}};
  d.any_rank = true;
  d.grows = {{d.cases.back(), {"fewer rows", {real({7, 1031})}, attrs}}};
  d.speed = Case{"speed", {real({1024, 1024})}, attrs};
  return d;
}

// Functions of one number, tried on [low, high].
Description curve(const char* name, double (*f)(double, const Inputs&), double low, double high,
                  std::vector<core::Attrs> variants = {{}}) {
  Description d = unary_op(name, f, variants[0]);
  d.cases.clear();
  for (const core::Attrs& a : variants) {
    d.cases.push_back({"small " + a.text(), {real({3, 4, 5}, low, high)}, a});
    d.cases.push_back({"scalar " + a.text(), {real({}, low, high)}, a});
    d.cases.push_back({"empty " + a.text(), {real({4, 0}, low, high)}, a});
    d.cases.push_back({"threads " + a.text(), {real({40, 1031}, low, high)}, a, {}, true});
  }
  d.loosen = 4;
  d.grows = {{d.cases[3], {"fewer rows", {real({7, 1031}, low, high)}, variants[0]}}};
  d.speed = Case{"speed", {real({1024, 1024}, low, high)}, variants[0]};
  return d;
}

bool holds(const std::string& relation, double a, double b) {
  if (relation == "eq") return a == b;
  if (relation == "ne") return a != b;
  if (relation == "lt") return a < b;
  if (relation == "le") return a <= b;
  if (relation == "gt") return a > b;
  return a >= b;
}
// Few different numbers, so that some are equal.
Arg coarse(Shape s) {
  return {std::move(s), [](Random& r, int64_t) { return static_cast<double>(r.below(5)) - 2; }};
}
Description compare() {
  Description d{.op = "core.compare",
                .reference =
                    [](const Inputs& in) {
                      Values y(in[0].shape);
                      for (int64_t i = 0; i < y.size(); ++i)
                        y[i] = holds(in.attrs.str("relation"), in[0][i], in[1][i % in[1].size()]);
                      return std::vector<Values>{y};
                    },
                .cases = {},
                .dtypes = kFloatsAndIndices,
                .gradient = false};
  for (const char* relation : {"eq", "ne", "lt", "le", "gt", "ge"})
    d.cases.push_back({relation, {coarse({3, 4, 5}), coarse({4, 5})}, {{"relation", std::string(relation)}}});
  const core::Attrs less{{"relation", std::string("lt")}};
  d.cases.push_back({"scalar b", {coarse({3, 5}), coarse({})}, less});
  d.cases.push_back({"empty", {coarse({0, 4}), coarse({4})}, less});
  d.cases.push_back({"threads", {coarse({40, 1031}), coarse({40, 1031})}, less, {}, true});
  d.any_rank = true;
  d.grows = {{d.cases.back(), {"fewer rows", {coarse({7, 1031}), coarse({7, 1031})}, less}}};
  return d;
}

Description absolute() {
  Description d = unary_op("core.abs", [](double x, const Inputs&) { return std::abs(x); }, {});
  for (Case& c : d.cases) c.in[0] = away(c.in[0].shape, 0.05);  // not at the corner
  return d;
}

Arg coin(Shape s) { return index(std::move(s), 2, GESTALT_BOOL); }
Description where() {
  return {.op = "core.where",
          .reference =
              [](const Inputs& in) {
                Values y(in[0].shape);
                for (int64_t i = 0; i < y.size(); ++i)
                  y[i] = in[0][i] != 0 ? in[1][i % in[1].size()] : in[2][i % in[2].size()];
                return std::vector<Values>{y};
              },
          .cases = {{"same shape", {coin({3, 4, 5}), real({3, 4, 5}), real({3, 4, 5})}, {}},
                    {"rows", {coin({3, 4, 5}), real({4, 5}), real({5})}, {}},
                    {"scalar b", {coin({3, 4, 5}), real({3, 4, 5}), real({})}, {}},
                    {"scalars", {coin({}), real({}), real({})}, {}},
                    {"empty", {coin({0, 4}), real({0, 4}), real({4})}, {}},
                    {"threads", {coin({40, 1031}), real({40, 1031}), real({1031})}, {}, {}, true}},
          .dtypes = kFloatsAndIndices,
          .any_rank = true,
          .grows = {{{"", {coin({40, 1031}), real({40, 1031}), real({1031})}, {}},
                     {"fewer rows", {coin({7, 1031}), real({7, 1031}), real({1031})}, {}}}}};
}

double clamp(double x, const Inputs& in) { return std::min(std::max(x, in.attrs.f64("min")), in.attrs.f64("max")); }
Description clamp_bwd(std::vector<core::Attrs> variants) {
  Description d{.op = "core.clamp_bwd",
                .reference =
                    [](const Inputs& in) {
                      Values y(in[0].shape);
                      for (int64_t i = 0; i < y.size(); ++i) y[i] = clamp(in[0][i], in) == in[0][i] ? in[1][i] : 0;
                      return std::vector<Values>{y};
                    },
                .cases = {},
                .gradient = false};
  for (const core::Attrs& a : variants) {
    d.cases.push_back({"small " + a.text(), {real({3, 4, 5}), real({3, 4, 5})}, a});
    d.cases.push_back({"empty " + a.text(), {real({0, 3}), real({0, 3})}, a});
    d.cases.push_back({"threads " + a.text(), {real({40, 1031}), real({40, 1031})}, a, {}, true});
  }
  d.grows = {{d.cases[2], {"fewer rows", {real({7, 1031}), real({7, 1031})}, variants[0]}}};
  return d;
}

std::vector<Description> describe() {
  const std::vector<core::Attrs> limits = {{{"min", -0.4}, {"max", 0.3}}, {{"min", -0.2}}, {{"max", 0.1}}};

  return {binary_op("core.add", binary([](double a, double b) { return a + b; }), 0, kFloatsAndIndices),
          binary_op("core.sub", binary([](double a, double b) { return a - b; }), 0, kFloatsAndIndices),
          binary_op("core.mul", binary([](double a, double b) { return a * b; }), 0, kFloatsAndIndices),
          binary_op("core.div", binary([](double a, double b) { return a / b; }), 0.25, kFloats),
          unary_op("core.neg", [](double x, const Inputs&) { return -x; }, {}),
          unary_op("core.scale", [](double x, const Inputs& in) { return x * in.attrs.f64("factor"); },
                   {{"factor", -0.375}}),
          binary_op("core.residual_add", binary([](double a, double b) { return a + b; }), 0, kFloatsAndIndices),
          binary_op("core.bias_add", binary([](double a, double b) { return a + b; }), 0, kFloatsAndIndices),
          absolute(),
          curve(
              "core.exp", [](double x, const Inputs&) { return std::exp(x); }, -2, 2),
          curve(
              "core.log", [](double x, const Inputs&) { return std::log(x); }, 0.2, 3),
          curve(
              "core.sqrt", [](double x, const Inputs&) { return std::sqrt(x); }, 0.2, 3),
          curve(
              "core.rsqrt", [](double x, const Inputs&) { return 1 / std::sqrt(x); }, 0.2, 3),
          curve(
              "core.tanh", [](double x, const Inputs&) { return std::tanh(x); }, -3, 3),
          curve(
              "core.sigmoid", [](double x, const Inputs&) { return 1 / (1 + std::exp(-x)); }, -3, 3),
          compare(),
          where(),
          curve("core.clamp", clamp, -1, 1, limits),
          clamp_bwd(limits)};
}

const Family kFamily("element", describe);

}  // namespace

}  // namespace gestalt::harness
