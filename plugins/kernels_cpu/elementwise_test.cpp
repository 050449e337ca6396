#include <cmath>

#include "plugins/kernels_cpu/kernel_caller.h"
#include "tests/catch_compat.hpp"

namespace gestalt::kernels_cpu {
namespace {

const Shape kShape = {5, 3, 7};
const Values kA = some_values(105, 1), kB = some_values(105, 2);

Reference binary(double (*f)(double, double)) {
  return [f](const std::vector<Values>& in) {
    Values y;
    for (size_t i = 0; i < in[0].size(); ++i) y.push_back(f(in[0][i], in[1][i % in[1].size()]));
    return std::vector<Values>{y};
  };
}

Reference unary(double (*f)(double)) {
  return [f](const std::vector<Values>& in) {
    Values y;
    for (double v : in[0]) y.push_back(f(v));
    return std::vector<Values>{y};
  };
}

// Inputs of the backward are those of the forward, then dy.
Reference backward_of(const Reference& forward) {
  return [forward](const std::vector<Values>& in) {
    return std::vector<Values>{finite_differences(forward, {in[0]}, 0, {in[1]})};
  };
}

double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double gelu_erf(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double silu(double x) { return x / (1 + std::exp(-x)); }

Values scaled(Values values, double factor) {
  for (double& v : values) v *= factor;
  return values;
}

TEST_CASE("binary ops work on equal shapes, on a repeated suffix and on a scalar") {
  Values away = kB;
  for (double& v : away) v += v < 0 ? -0.5 : 0.5;
  const std::pair<std::string_view, double (*)(double, double)> ops[] = {
      {"core.add", [](double a, double b) { return a + b; }},
      {"core.sub", [](double a, double b) { return a - b; }},
      {"core.mul", [](double a, double b) { return a * b; }},
      {"core.div", [](double a, double b) { return a / b; }}};
  for (const auto& [op, f] : ops)
    for (const Shape& b : {kShape, Shape{3, 7}, Shape{7}, Shape{}})
      check_op(
          {op, {{kShape, kA}, {b, Values(away.begin(), away.begin() + count_of(b))}}, {{kShape, true}}, {}, binary(f)});
}

TEST_CASE("binary ops take empty tensors and long rows") {
  check_op({"core.add", {{{0, 4}, {}}, {{4}, some_values(4)}}, {{{0, 4}, true}}, {}, binary([](double a, double b) {
              return a + b;
            })});
  check_op({"core.mul",
            {{{40000}, some_values(40000)}, {{40000}, some_values(40000, 3)}},
            {{{40000}}},
            {},
            binary([](double a, double b) { return a * b; })});
}

TEST_CASE("integer addition is exact") {
  Array a(kI64, {3}, {1, 2, 3}), b(kI32, {3}, {10, 20, -30}), y(kI64, {3});
  call_kernel("core.add", {&a, &b}, {&y}, {});
  CHECK(y.get() == Values{11, 22, -27});
}

TEST_CASE("a broadcast input has stride 0") {
  Array a(kF32, {2, 3}, {1, 2, 3, 0, 0, 0}), b(kF32, {2, 3}, {1, 1, 1, 1, 1, 1}), y(kF32, {2, 3});
  a.set_stride(0, 0);
  call_kernel("core.add", {&a, &b}, {&y}, {});
  CHECK(y.get() == Values{2, 3, 4, 2, 3, 4});
}

TEST_CASE("add may overlay its first input") {
  for (DType dtype : {kF32, kBF16}) {
    Array a(dtype, {4}, {1, 2, 3, 4}), b(dtype, {4}, {1, 1, 1, 1});
    call_kernel("core.add", {&a, &b}, {&a}, {});
    CHECK(a.get() == Values{2, 3, 4, 5});
  }
}

TEST_CASE("scale and neg multiply") {
  check_op({"core.scale", {{kShape, kA}}, {{kShape}}, {{"factor", -2.5}}, unary([](double x) { return -2.5 * x; })});
  check_op({"core.neg", {{kShape, kA}}, {{kShape}}, {}, unary([](double x) { return -x; })});
}

TEST_CASE("activations match their formulas and their backwards finite differences") {
  const Values x = scaled(some_values(105, 5), 6), dy = some_values(105, 6);
  const std::tuple<std::string_view, std::string_view, double (*)(double), const char*> ops[] = {
      {"core.gelu", "core.gelu_bwd", gelu_tanh, "tanh"},
      {"core.gelu", "core.gelu_bwd", gelu_erf, "none"},
      {"core.silu", "core.silu_bwd", silu, nullptr},
      {"core.relu", "core.relu_bwd", [](double v) { return v > 0 ? v : 0; }, nullptr}};
  for (const auto& [forward, backward, f, form] : ops) {
    std::vector<Attr> attrs;
    if (form != nullptr) attrs.emplace_back("approximate", form);
    check_op({forward, {{kShape, x}}, {{kShape}}, attrs, unary(f)});
    check_op({backward, {{kShape, x}, {kShape, dy}}, {{kShape}}, attrs, backward_of(unary(f)), 100});
  }
}

TEST_CASE("activations of large values are finite") {
  const Values x = {-1e30, -200, -88, 0, 88, 200, 1e30};
  for (std::string_view op : {"core.gelu", "core.silu", "core.relu"}) {
    Array in(kF32, {7}, x), y(kF32, {7});
    call_kernel(op, {&in}, {&y}, {});
    const Values got = y.get();
    CHECK(got[0] == 0);
    CHECK(std::abs(got[1]) < 1e-30);
    CHECK(got[3] == 0);
    CHECK(got[5] == 200);
    CHECK(got[6] == static_cast<double>(1e30f));
    Array dy(kF32, {7}, Values(7, 1)), dx(kF32, {7});
    call_kernel(std::string(op) + "_bwd", {&in, &dy}, {&dx}, {});
    CHECK(std::abs(dx.get()[0]) == 0);
    CHECK(dx.get()[6] == 1);
  }
}

TEST_CASE("an unknown form of gelu is refused by name") {
  Array x(kF32, {1}), y(kF32, {1});
  CHECK_THROWS_WITH(call_kernel("core.gelu", {&x}, {&y}, {{"approximate", "fast"}}), Catch::Contains("got 'fast'"));
}

TEST_CASE("swiglu gates the second half with the first") {
  const Shape in{6, 10}, out{6, 5};
  const Reference forward = [](const std::vector<Values>& x) {
    Values y;
    for (size_t t = 0; t < 6; ++t)
      for (size_t i = 0; i < 5; ++i) y.push_back(silu(x[0][t * 10 + i]) * x[0][t * 10 + 5 + i]);
    return std::vector<Values>{y};
  };
  const Values x = scaled(some_values(60, 7), 3), dy = some_values(30, 8);
  check_op({"core.swiglu", {{in, x}}, {{out}}, {}, forward});
  check_op({"core.swiglu_bwd", {{in, x}, {out, dy}}, {{in}}, {}, backward_of(forward), 100});
}

TEST_CASE("copy keeps the bits and cast rounds to nearest even") {
  check_op({"core.copy", {{kShape, kA}}, {{kShape, true}}, {}, unary([](double x) { return x; })});
  Array x(kF32, {4}, {1 + 1.0 / 256, 1 + 3.0 / 256, 65520, -1e-8}), bf(kBF16, {4}), half(kF16, {4});
  call_kernel("core.cast", {&x}, {&bf}, {{"dtype", "bf16"}});
  call_kernel("core.cast", {&x}, {&half}, {{"dtype", "f16"}});
  CHECK(bf.get() == Values{1, 1 + 2.0 / 128, 65536, -static_cast<double>(0x1.58p-27)});
  CHECK(std::isinf(half.get()[2]));
  CHECK(half.get()[3] == 0);
  Array big(kI64, {2}, {9007199254740992.0, -5}), same(kI64, {2}), small(kI32, {2}), truth(kBool, {2});
  call_kernel("core.copy", {&big}, {&same}, {});
  CHECK(same.get() == big.get());
  Array five(kI64, {2}, {5, 0});
  call_kernel("core.cast", {&five}, {&small}, {{"dtype", "i32"}});
  call_kernel("core.cast", {&five}, {&truth}, {{"dtype", "bool"}});
  CHECK(small.get() == Values{5, 0});
  CHECK(truth.get() == Values{1, 0});
}

TEST_CASE("every f16 value survives the way to f32 and back") {
  Values all;
  for (int i = 0; i < 2047; ++i) all.push_back(std::ldexp(i, -24));  // all subnormals and the first normals
  for (int e = -13; e < 16; ++e)
    for (int m : {0, 1, 511, 1023}) all.push_back(-std::ldexp(1 + m / 1024.0, e));
  const Shape shape{static_cast<int64_t>(all.size())};
  Array half(kF16, shape, all), wide(kF32, shape), back(kF16, shape);
  CHECK(half.get() == all);
  call_kernel("core.cast", {&half}, {&wide}, {{"dtype", "f32"}});
  call_kernel("core.cast", {&wide}, {&back}, {{"dtype", "f16"}});
  CHECK(back.bytes() == half.bytes());
}

TEST_CASE("fill, concat and pad move values to their places") {
  Array filled(kI32, {2, 2});
  call_kernel("core.fill", {}, {&filled}, {{"value", 7.0}});
  CHECK(filled.get() == Values{7, 7, 7, 7});
  check_op({"core.concat",
            {{{2, 2}, {1, 2, 3, 4}}, {{2, 0}, {}}, {{2, 1}, {5, 6}}},
            {{{2, 3}}},
            {{"dim", -1}},
            [](const std::vector<Values>&) {
              return std::vector<Values>{{1, 2, 5, 3, 4, 6}};
            }});
  check_op({"core.pad",
            {{{2, 2}, {1, 2, 3, 4}}},
            {{{2, 5}}},
            {{"dim", 1}, {"before", 1}, {"after", 2}},
            [](const std::vector<Values>&) {
              return std::vector<Values>{{0, 1, 2, 0, 0, 0, 3, 4, 0, 0}};
            }});
}

TEST_CASE("sum reduces any set of dimensions") {
  const auto sum_over = [](std::vector<bool> reduced) -> Reference {
    return [reduced](const std::vector<Values>& in) {
      const int64_t kept[3] = {reduced[0] ? 1 : 5, reduced[1] ? 1 : 3, reduced[2] ? 1 : 7};
      Values y(static_cast<size_t>(kept[0] * kept[1] * kept[2]));
      for (int64_t i = 0; i < 5; ++i)
        for (int64_t j = 0; j < 3; ++j)
          for (int64_t k = 0; k < 7; ++k)
            y[static_cast<size_t>(((reduced[0] ? 0 : i) * kept[1] + (reduced[1] ? 0 : j)) * kept[2] +
                                  (reduced[2] ? 0 : k))] += in[0][static_cast<size_t>((i * 3 + j) * 7 + k)];
      return std::vector<Values>{y};
    };
  };
  const auto check = [&](std::vector<int64_t> dims, bool keep, Shape out, std::vector<bool> reduced) {
    check_op({"core.sum", {{kShape, kA}}, {{out, true}}, {{"dims", dims}, {"keep", keep}}, sum_over(reduced)});
  };
  check({0}, false, {3, 7}, {true, false, false});
  check({-1}, true, {5, 3, 1}, {false, false, true});
  check({0, 2}, false, {3}, {true, false, true});
  check({1}, false, {5, 7}, {false, true, false});
  check({}, false, {}, {true, true, true});
  const std::vector<int64_t> first{0};
  check_op({"core.sum", {{{0, 3}, {}}}, {{{3}, true}}, {{"dims", first}}, [](const auto&) {
              return std::vector<Values>{{0, 0, 0}};
            }});
}

TEST_CASE("sum_squares has the same bits for any number of threads") {
  check_op({"core.sum_squares",
            {{{3, 20000}, some_values(60000)}},
            {{{}, false, true}},
            {},
            [](const std::vector<Values>& in) {
              double total = 0;
              for (double v : in[0]) total += v * v;
              return std::vector<Values>{{total}};
            }});
}

TEST_CASE("a dtype that a kernel does not know is declined by name") {
  Array x(kI32, {2}), y(kI32, {2});
  CHECK_THROWS_WITH(call_kernel("core.silu", {&x}, {&y}, {}), Catch::Contains("got i32[2]"));
}

}  // namespace
}  // namespace gestalt::kernels_cpu
