#include <cmath>

#include "plugins/kernels_cpu/kernel_caller.h"
#include "tests/catch_compat.hpp"

namespace gestalt::kernels_cpu {
namespace {

constexpr int64_t kSize = 40000;
const Values kScalars{0.01, 3, 0.5, 1, 0, 0, 0, 0};

// Two segments and a gap of ten elements that belong to none.
struct Table {
  Array segments{kI64, {2, 2}, {0, 1000, 1010, kSize - 1010}};
  Array hyper{kF32, {2, 2}, {0.5, 1, 0, 2}};
  Array scalars{kF32, {8}, kScalars};
  Array clip{kF32, {}, {0.25}};
};

struct Hyper {
  double decay, lr;
  bool held;
};
Hyper hyper_at(int64_t i) {
  if (i < 1000) return {0.5, 0.01f, false};
  return {0, 2 * static_cast<double>(0.01f), i < 1010};
}

void check_near(const Values& got, const Values& want, double tolerance) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::abs(got[i] - want[i]) <= tolerance * (1 + std::abs(want[i]))) continue;
    INFO(i);
    CHECK(got[i] == want[i]);
    return;
  }
}

std::vector<Attr> adam_attrs() { return {{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}}; }

TEST_CASE("adamw moves weights by the formula, segment by segment, on any number of threads") {
  const Values p = some_values(kSize, 1), g = some_values(kSize, 2), m = some_values(kSize, 3);
  Values v = some_values(kSize, 4), p1 = p, m1 = m;
  for (double& x : v) x = x * x;
  Values v1 = v;
  for (size_t i = 0; i < p.size(); ++i) {
    const Hyper h = hyper_at(static_cast<int64_t>(i));
    if (h.held) continue;
    m1[i] = 0.9 * m[i] + 0.1 * 0.25 * g[i];
    v1[i] = 0.95 * v[i] + 0.05 * 0.0625 * g[i] * g[i];
    const double mhat = m1[i] / (1 - std::pow(0.9, 3)), vhat = v1[i] / (1 - std::pow(0.95, 3));
    p1[i] -= h.lr * (mhat / (std::sqrt(vhat) + 1e-8) + h.decay * p[i]);
  }
  for (DType dtype : {kF64, kF32}) {
    for (int64_t threads : {1, 3}) {
      Table t;
      Array param(dtype, {kSize}, p), grad(dtype, {kSize}, g), first(dtype, {kSize}, m), second(dtype, {kSize}, v);
      call_kernel("core.adamw_update",
                  {&param, nullptr, &grad, &first, &second, &t.segments, &t.hyper, &t.scalars, &t.clip}, {},
                  adam_attrs(), {threads});
      const double tolerance = dtype == kF64 ? 1e-12 : 1e-6;
      check_near(first.get(), m1, tolerance);
      check_near(second.get(), v1, tolerance);
      check_near(param.get(), p1, tolerance);
      CHECK(param.get()[1005] == p[1005]);
    }
  }
}

TEST_CASE("a narrow parameter follows its master weights") {
  const Values p = some_values(kSize, 1), g = some_values(kSize, 2);
  Table t;
  Array param(kBF16, {kSize}, p), master(kF32, {kSize}, p), grad(kF32, {kSize}, g), m(kF32, {kSize}, Values(kSize, 0)),
      v(kF32, {kSize}, Values(kSize, 0));
  Array alone(kF32, {kSize}, p), m2(kF32, {kSize}, Values(kSize, 0)), v2(kF32, {kSize}, Values(kSize, 0)),
      narrow(kBF16, {kSize});
  call_kernel("core.adamw_update", {&param, &master, &grad, &m, &v, &t.segments, &t.hyper, &t.scalars, &t.clip}, {},
              adam_attrs());
  call_kernel("core.adamw_update", {&alone, nullptr, &grad, &m2, &v2, &t.segments, &t.hyper, &t.scalars, &t.clip}, {},
              adam_attrs());
  CHECK(master.bytes() == alone.bytes());
  call_kernel("core.cast", {&master}, {&narrow}, {{"dtype", "bf16"}});
  CHECK(narrow.bytes() == param.bytes());
}

TEST_CASE("a negative clip factor skips the update") {
  const Values p = some_values(8, 1), g(8, std::nan(""));
  Array segments(kI64, {1, 2}, {0, 8}), hyper(kF32, {1, 2}, {0.1, 1}), scalars(kF32, {8}, kScalars),
      clip(kF32, {}, {-1});
  Array param(kF32, {8}, p), grad(kF32, {8}, g), m(kF32, {8}, p), v(kF32, {8}, p);
  const auto before = param.bytes();
  call_kernel("core.adamw_update", {&param, nullptr, &grad, &m, &v, &segments, &hyper, &scalars, &clip}, {},
              adam_attrs());
  call_kernel("core.sgd_update", {&param, nullptr, &grad, &m, &segments, &hyper, &scalars, &clip}, {},
              {{"momentum", 0.9}, {"nesterov", false}});
  CHECK(param.bytes() == before);
  CHECK(m.bytes() == before);
}

TEST_CASE("sgd knows plain steps, momentum and nesterov") {
  const Values p = some_values(kSize, 1), g = some_values(kSize, 2), b = some_values(kSize, 3);
  for (int form : {0, 1, 2}) {
    Values p1 = p, b1 = b;
    for (size_t i = 0; i < p.size(); ++i) {
      const Hyper h = hyper_at(static_cast<int64_t>(i));
      if (h.held) continue;
      const double d = 0.25 * g[i] + h.decay * p[i];
      if (form > 0) b1[i] = 0.9 * b[i] + d;
      p1[i] -= h.lr * (form == 0 ? d : form == 1 ? b1[i] : d + 0.9 * b1[i]);
    }
    for (DType dtype : {kF64, kF32}) {
      Table t;
      Array param(dtype, {kSize}, p), grad(dtype, {kSize}, g), buf(dtype, {kSize}, b);
      call_kernel("core.sgd_update",
                  {&param, nullptr, &grad, form > 0 ? &buf : nullptr, &t.segments, &t.hyper, &t.scalars, &t.clip}, {},
                  {{"momentum", 0.9}, {"nesterov", form == 2}}, {2});
      check_near(param.get(), p1, dtype == kF64 ? 1e-12 : 1e-6);
      check_near(buf.get(), form > 0 ? b1 : b, dtype == kF64 ? 1e-12 : 1e-6);
    }
  }
}

TEST_CASE("the clip factor limits the norm of the mean and marks what is not finite") {
  Array scalars(kF32, {8}, kScalars), clip(kF32, {}), norm(kF32, {});
  const auto run = [&](double sum_squares, double max_norm) {
    Array sum(kF32, {}, {sum_squares});
    call_kernel("core.norm_clip_scale", {&sum, &scalars}, {&clip, &norm}, {{"max_norm", max_norm}});
    return clip.get()[0];
  };
  CHECK(run(16, 1.0) == Approx(0.25).epsilon(1e-5));
  CHECK(norm.get()[0] == 2);
  CHECK(run(16, 4.0) == 0.5);
  CHECK(run(16, 0.0) == 0.5);
  CHECK(run(std::nan(""), 1.0) == -1);
  CHECK(run(INFINITY, 0.0) == -1);
}

}  // namespace
}  // namespace gestalt::kernels_cpu
