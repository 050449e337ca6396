#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

std::vector<Values> sum(const Inputs& in) {
  const Values& x = in[0];
  const int64_t n = x.ndim();
  std::vector<bool> reduced(static_cast<size_t>(n), in.attrs.i64_list("dims").empty());
  for (int64_t d : in.attrs.i64_list("dims")) reduced[static_cast<size_t>(d < 0 ? d + n : d)] = true;
  Shape kept, out;
  for (size_t d = 0; d < reduced.size(); ++d) {
    kept.push_back(reduced[d] ? 1 : x.shape[d]);
    if (!reduced[d])
      out.push_back(x.shape[d]);
    else if (in.attrs.boolean("keep"))
      out.push_back(1);
  }
  Values y(out);
  for (int64_t i = 0; i < x.size(); ++i) {
    int64_t rest = i, to = 0, stride = 1;
    for (size_t d = reduced.size(); d-- > 0;) {
      const int64_t k = rest % x.shape[d];
      rest /= x.shape[d];
      if (!reduced[d]) to += k * stride;
      stride *= kept[d];
    }
    y[to] += x[i];
  }
  return {y};
}

std::vector<Values> sum_squares(const Inputs& in) {
  Values y{Shape{}};
  for (double x : in[0].v) y[0] += x * x;
  return {y};
}

core::Attrs over(std::vector<int64_t> dims, bool keep = false) { return {{"dims", dims}, {"keep", keep}}; }

std::vector<Values> mean(const Inputs& in) {
  std::vector<Values> y = sum(in);
  const double count = static_cast<double>(in[0].size()) / static_cast<double>(y[0].size());
  for (double& v : y[0].v) v /= count;
  return y;
}

// Rows are the last dimension.
Shape without_last(Shape s) {
  s.pop_back();
  return s;
}
int64_t rows_of(const Values& x) { return count_of(without_last(x.shape)); }

std::vector<Values> softmax(const Inputs& in) {
  const Values& x = in[0];
  const int64_t n = x.dim(-1);
  Values y(x.shape);
  for (int64_t r = 0; r < rows_of(x); ++r) {
    double total = 0;
    for (int64_t i = r * n; i < (r + 1) * n; ++i) total += y[i] = std::exp(x[i]);
    for (int64_t i = r * n; i < (r + 1) * n; ++i) y[i] /= total;
  }
  return {y};
}
std::vector<Values> softmax_bwd(const Inputs& in) {
  const Values &y = in[0], &dy = in[1];
  const int64_t n = y.dim(-1);
  Values dx(y.shape);
  for (int64_t r = 0; r < rows_of(y); ++r) {
    double dot = 0;
    for (int64_t i = r * n; i < (r + 1) * n; ++i) dot += y[i] * dy[i];
    for (int64_t i = r * n; i < (r + 1) * n; ++i) dx[i] = y[i] * (dy[i] - dot);
  }
  return {dx};
}
std::vector<Values> logsumexp(const Inputs& in) {
  const Values& x = in[0];
  const int64_t n = x.dim(-1);
  Values y(without_last(x.shape));
  for (int64_t r = 0; r < y.size(); ++r) {
    double total = 0;
    for (int64_t i = r * n; i < (r + 1) * n; ++i) total += std::exp(x[i]);
    y[r] = std::log(total);
  }
  return {y};
}
std::vector<Values> logsumexp_bwd(const Inputs& in) {
  Values dx(in[0].shape);
  const int64_t n = dx.dim(-1);
  for (int64_t i = 0; i < dx.size(); ++i) dx[i] = in[2][i / n] * std::exp(in[0][i] - in[1][i / n]);
  return {dx};
}
std::vector<Values> cumsum(const Inputs& in) {
  Values y(in[0].shape);
  const int64_t n = y.dim(-1);
  const bool reverse = in.attrs.boolean("reverse");
  for (int64_t r = 0; r < rows_of(y); ++r) {
    double total = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = r * n + (reverse ? n - 1 - i : i);
      y[at] = total += in[0][at];
    }
  }
  return {y};
}
std::vector<Values> largest(const Values& x, int64_t k, Shape shape) {
  const int64_t n = x.dim(-1);
  Values y(shape), index(shape);
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t r = 0; r < rows_of(x); ++r) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return x[r * n + a] > x[r * n + b]; });
    for (int64_t i = 0; i < k; ++i) {
      index[r * k + i] = static_cast<double>(order[static_cast<size_t>(i)]);
      y[r * k + i] = x[r * n + order[static_cast<size_t>(i)]];
    }
  }
  return {y, index};
}
std::vector<Values> max(const Inputs& in) { return largest(in[0], 1, without_last(in[0].shape)); }
std::vector<Values> argmax(const Inputs& in) { return {max(in)[1]}; }
std::vector<Values> topk(const Inputs& in) {
  Shape shape = in[0].shape;
  shape.back() = in.attrs.i64("k");
  return largest(in[0], shape.back(), shape);
}
std::vector<Values> topk_bwd(const Inputs& in) {
  Shape shape = in[1].shape;
  const int64_t k = shape.back(), n = shape.back() = in.attrs.i64("size");
  Values dx(shape);
  for (int64_t i = 0; i < in[1].size(); ++i) dx[i / k * n + static_cast<int64_t>(in[0][i])] += in[1][i];
  return {dx};
}
std::vector<Values> is_finite(const Inputs& in) {
  Values y{Shape{}};
  y[0] = std::all_of(in[0].v.begin(), in[0].v.end(), [](double x) { return std::isfinite(x); });
  return {y};
}

// Numbers a step of 1/4 apart in shuffled order, so that rounding and differences keep their order; a few rows.
Arg apart(Shape s) {
  const int64_t n = s.back();
  return {std::move(s),
          [n](Random& r, int64_t i) { return 0.25 * static_cast<double>(i % n * 7 % n) - 2 + r.uniform(0, 0.1); }};
}

Description row_op(const char* name, Reference reference, Arg (*make)(Shape),
                   std::vector<core::Attrs> variants = {{}}) {
  Description d{.op = name, .reference = std::move(reference), .cases = {}};
  for (const core::Attrs& a : variants) {
    d.cases.push_back({"small " + a.text(), {make({5, 11})}, a});
    d.cases.push_back({"three dimensions " + a.text(), {make({2, 3, 5})}, a});
    d.cases.push_back({"one row " + a.text(), {make({9}).ordered()}, a});
    d.cases.push_back({"empty " + a.text(), {make({0, 5})}, a});
    d.cases.push_back({"threads " + a.text(), {make({200, 263})}, a, {}, true});
  }
  d.loosen = 10;
  d.any_rank = true;
  d.any_size = {0};
  d.grows = {{d.cases[4], {"fewer rows", {make({9, 263})}, variants[0]}}};
  d.speed = Case{"speed", {make({1024, 1024})}, variants[0]};
  return d;
}
Arg some(Shape s) { return real(std::move(s), -3, 3); }

Case softmax_grad(std::string name, Shape s, bool large = false) {
  return {std::move(name),
          {real(s, 0, 1), real(s)},
          {},
          [](std::vector<Values>& v) {
            v[0] = softmax({{v[0]}, {true}, {}, GESTALT_F64})[0];
          },
          large};
}
Case lse_grad(std::string name, Shape s, bool large = false) {
  return {std::move(name),
          {some(s), wide(without_last(s)).ordered(), wide(without_last(s)).ordered()},
          {},
          [](std::vector<Values>& v) {
            v[1] = logsumexp({{v[0]}, {true}, {}, GESTALT_F64})[0];
          },
          large};
}
Case chosen(std::string name, Shape s, int64_t size, bool large = false) {
  return {std::move(name), {index(s, size), real(s)}, {{"size", size}}, {}, large};
}
// The second to last element may be infinite.
Case finite(std::string name, Shape s, double odd = 0) {
  Arg a = real(s);
  const int64_t at = count_of(s) - 2;
  if (odd != 0) a.fill = [odd, at](Random& r, int64_t i) { return i == at ? odd : r.uniform(-1, 1); };
  return {std::move(name), {std::move(a).ordered()}, {}, {}, count_of(s) > 1000};
}

Description argmax_op() {
  Description d = row_op("core.argmax", argmax, apart);
  d.gradient = false;
  return d;
}

std::vector<Description> describe() {
  return {{.op = "core.sum",
           .reference = sum,
           .cases = {{"all", {real({3, 4, 5})}, over({})},
                     {"all, kept", {real({3, 4, 5})}, over({}, true)},
                     {"first", {real({3, 4, 5})}, over({0})},
                     {"first two", {real({3, 4, 5})}, over({0, 1})},
                     {"middle", {real({3, 4, 5})}, over({1})},
                     {"middle, kept", {real({3, 4, 5})}, over({1}, true)},
                     {"last", {real({3, 4, 5})}, over({-1})},
                     {"outer", {real({3, 4, 5})}, over({0, 2})},
                     {"scalar", {real({})}, over({})},
                     {"empty to zeros", {real({0, 4})}, over({0})},
                     {"empty to nothing", {real({0, 4})}, over({1})},
                     {"empty to one", {real({0, 4})}, over({})},
                     {"tall", {real({701, 130})}, over({0}), {}, true},
                     {"tall, whole chunks", {real({701, 136})}, over({0}), {}, true},
                     {"wide", {real({5, 9001})}, over({1}), {}, true},
                     {"much to one", {real({41, 1031})}, over({}), {}, true}},
           .loosen = 40,
           .any_rank = true,
           .grows = {{{"", {real({701, 130})}, over({0})}, {"fewer rows", {real({33, 130})}, over({0})}}},
           .speed = Case{"speed", {real({1024, 1024})}, over({0})}},
          {.op = "core.mean",
           .reference = mean,
           .cases = {{"all", {real({3, 4, 5})}, over({})},
                     {"first", {real({3, 4, 5})}, over({0})},
                     {"middle, kept", {real({3, 4, 5})}, over({1}, true)},
                     {"last", {real({3, 4, 5})}, over({-1})},
                     {"outer", {real({3, 4, 5})}, over({0, 2})},
                     {"scalar", {real({})}, over({})},
                     {"empty to nothing", {real({0, 4})}, over({1})},
                     {"tall", {real({701, 130})}, over({0}), {}, true},
                     {"wide", {real({5, 9001})}, over({1}), {}, true}},
           .loosen = 40,
           .any_rank = true,
           .grows = {{{"", {real({701, 130})}, over({0})}, {"fewer rows", {real({33, 130})}, over({0})}}},
           .speed = Case{"speed", {real({1024, 1024})}, over({0})}},
          row_op("core.softmax", softmax, some),
          {.op = "core.softmax_bwd",
           .reference = softmax_bwd,
           .cases = {softmax_grad("small", {5, 11}), softmax_grad("three dimensions", {2, 3, 5}),
                     softmax_grad("empty", {0, 5}), softmax_grad("threads", {200, 263}, true)},
           .gradient = false,
           .loosen = 10,
           .grows = {{softmax_grad("", {200, 263}), softmax_grad("fewer rows", {9, 263})}}},
          row_op("core.logsumexp", logsumexp, some),
          {.op = "core.logsumexp_bwd",
           .reference = logsumexp_bwd,
           .cases = {lse_grad("small", {5, 11}), lse_grad("three dimensions", {2, 3, 5}), lse_grad("empty", {0, 5}),
                     lse_grad("threads", {200, 263}, true)},
           .gradient = false,
           .loosen = 10,
           .any_size = {0},
           .grows = {{lse_grad("", {200, 263}), lse_grad("fewer rows", {9, 263})}}},
          row_op("core.cumsum", cumsum, some, {{{"reverse", false}}, {{"reverse", true}}}),
          row_op("core.max", max, apart),
          argmax_op(),
          row_op("core.topk", topk, apart, {{{"k", int64_t{3}}}, {{"k", int64_t{1}}}}),
          {.op = "core.topk_bwd",
           .reference = topk_bwd,
           .cases = {chosen("small", {5, 3}, 7), chosen("three dimensions", {2, 3, 2}, 5), chosen("one", {4, 1}, 1),
                     chosen("empty", {0, 3}, 7), chosen("threads", {200, 8}, 263, true)},
           .gradient = false,
           .loosen = 4,
           .any_rank = true,
           .grows = {{chosen("", {200, 8}, 263), chosen("fewer rows", {9, 8}, 263)}},
           .bad_values = {{0, 7, "an index beyond the row"}, {0, -1, "a negative index"}}},
          {.op = "core.is_finite",
           .reference = is_finite,
           .cases = {finite("finite", {3, 4, 5}), finite("infinite", {3, 4, 5}, INFINITY),
                     finite("minus infinite", {4, 5}, -INFINITY), finite("not a number", {4, 5}, NAN),
                     finite("empty", {0, 3}), finite("threads", {41, 1031}),
                     finite("threads, infinite", {41, 1031}, INFINITY)},
           .gradient = false,
           .any_rank = true,
           .grows = {{finite("", {41, 1031}), finite("fewer rows", {7, 1031})}},
           .speed = finite("speed", {1024, 1024})},
          {.op = "core.sum_squares",
           .reference = sum_squares,
           .cases = {{"small", {real({3, 4, 5})}, {}},
                     {"scalar", {real({})}, {}},
                     {"empty", {real({0})}, {}},
                     {"threads", {real({41, 1031})}, {}, {}, true}},
           .gradient = false,
           .loosen = 10,
           .any_rank = true,
           .grows = {{{"", {real({41, 1031})}, {}}, {"fewer rows", {real({7, 1031})}, {}}}},
           .speed = Case{"speed", {real({1024, 1024})}, {}}}};
}

const Family kFamily("reduce", describe);

}  // namespace

}  // namespace gestalt::harness
