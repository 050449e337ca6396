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

std::vector<Description> describe() {
  return {binary_op("core.add", binary([](double a, double b) { return a + b; }), 0, kFloatsAndIndices),
          binary_op("core.sub", binary([](double a, double b) { return a - b; }), 0, kFloatsAndIndices),
          binary_op("core.mul", binary([](double a, double b) { return a * b; }), 0, kFloatsAndIndices),
          binary_op("core.div", binary([](double a, double b) { return a / b; }), 0.25, kFloats),
          unary_op("core.neg", [](double x, const Inputs&) { return -x; }, {}),
          unary_op("core.scale", [](double x, const Inputs& in) { return x * in.attrs.f64("factor"); },
                   {{"factor", -0.375}})};
}

const Family kFamily("element", describe);

}  // namespace

}  // namespace gestalt::harness
