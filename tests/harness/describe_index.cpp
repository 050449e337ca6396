#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

std::vector<Values> gather_rows(const Inputs& in) {
  const int64_t h = in[0].dim(1);
  Values y({in[1].size(), h});
  for (int64_t i = 0; i < y.size(); ++i) y[i] = in[0][static_cast<int64_t>(in[1][i / h]) * h + i % h];
  return {y};
}

std::vector<Values> scatter_add_rows(const Inputs& in) {
  const int64_t h = in[0].dim(1);
  Values y({in.attrs.i64("rows"), h});
  for (int64_t i = 0; i < in[0].size(); ++i) y[static_cast<int64_t>(in[1][i / h]) * h + i % h] += in[0][i];
  return {y};
}

std::vector<Values> index_select(const Inputs& in) {
  const Values& x = in[0];
  const int64_t asked = in.attrs.i64("dim"), dim = asked < 0 ? asked + x.ndim() : asked;
  Shape shape = x.shape;
  shape[static_cast<size_t>(dim)] = in[1].size();
  Values y(shape);
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < x.ndim(); ++d) inner *= x.dim(d);
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t outer = i / inner / in[1].size(), k = i / inner % in[1].size();
    y[i] = x[(outer * x.dim(dim) + static_cast<int64_t>(in[1][k])) * inner + i % inner];
  }
  return {y};
}

std::vector<Values> arange(const Inputs& in) {
  Values y({in.attrs.i64("size")});
  for (int64_t i = 0; i < y.size(); ++i) y[i] = in.attrs.f64("start") + static_cast<double>(i) * in.attrs.f64("step");
  return {y};
}

std::vector<Values> one_hot(const Inputs& in) {
  Shape shape = in[0].shape;
  const int64_t n = in.attrs.i64("classes");
  shape.push_back(n);
  Values y(shape);
  for (int64_t i = 0; i < in[0].size(); ++i) y[i * n + static_cast<int64_t>(in[0][i])] = 1;
  return {y};
}

core::Attrs rows(int64_t n) { return {{"rows", n}}; }
core::Attrs of(int64_t dim) { return {{"dim", dim}}; }
Case range(std::string name, int64_t size, const char* dtype, double start = 0, double step = 1) {
  return {std::move(name), {}, {{"size", size}, {"dtype", std::string(dtype)}, {"start", start}, {"step", step}}};
}
core::Attrs classes(int64_t n, const char* dtype) { return {{"classes", n}, {"dtype", std::string(dtype)}}; }

std::vector<Description> describe() {
  return {{.op = "core.gather_rows",
           .reference = gather_rows,
           .cases = {{"small", {real({5, 3}), index({9}, 5)}, {}},
                     {"i64", {real({5, 3}), index({9}, 5, GESTALT_I64)}, {}},
                     {"empty", {real({5, 3}), index({0}, 5)}, {}},
                     {"threads", {real({50, 257}), index({300}, 50)}, {}, {}, true}},
           .any_size = {0, 1},
           .grows = {{{"", {real({50, 257}), index({300}, 50)}, {}},
                      {"fewer tokens", {real({50, 257}), index({11}, 50)}, {}}}},
           .bad_values = {{1, 5, "a row beyond the table"}, {1, -1, "a negative row"}},
           .speed = Case{"speed", {real({1000, 512}), index({4096}, 1000)}, {}}},
          {.op = "core.scatter_add_rows",
           .reference = scatter_add_rows,
           .cases = {{"small", {real({9, 3}), index({9}, 5)}, rows(5)},
                     {"i64", {real({9, 3}), index({9}, 5, GESTALT_I64)}, rows(5)},
                     {"empty", {real({0, 3}), index({0}, 5)}, rows(5)},
                     {"threads", {real({300, 257}), index({300}, 50)}, rows(50), {}, true}},
           .loosen = 10,
           .any_size = {0},
           .grows = {{{"", {real({300, 257}), index({300}, 50)}, rows(50)},
                      {"fewer tokens", {real({11, 257}), index({11}, 50)}, rows(50)}}},
           .bad_values = {{1, 5, "a row beyond the result"}, {1, -1, "a negative row"}},
           .speed = Case{"speed", {real({4096, 512}), index({4096}, 1000)}, rows(1000)}},
          {.op = "core.index_select",
           .reference = index_select,
           .cases = {{"first", {real({5, 3, 2}), index({4}, 5)}, of(0)},
                     {"middle", {real({3, 5, 2}), index({4}, 5)}, of(1)},
                     {"last", {real({3, 2, 5}), index({7}, 5, GESTALT_I64)}, of(-1)},
                     {"empty", {real({3, 5}), index({0}, 5)}, of(1)}},
           .any_rank = true,
           .any_size = {0, 1}},
          {.op = "core.arange",
           .reference = arange,
           .cases = {range("i32", 9, "i32"), range("i64", 9, "i64", -3, 2), range("f32", 9, "f32", 0.5, 0.25),
                     range("f64", 9, "f64", 1, -0.1), range("bf16", 9, "bf16"), range("f16", 9, "f16"),
                     range("empty", 0, "i32")},
           .dtypes = {GESTALT_F32},
           .gradient = false},
          {.op = "core.one_hot",
           .reference = one_hot,
           .cases = {{"f32", {index({7}, 5)}, classes(5, "f32")},
                     {"i64 index, f64", {index({7}, 5, GESTALT_I64)}, classes(5, "f64")},
                     {"two dimensions, bool", {index({3, 4}, 5)}, classes(5, "bool")},
                     {"bf16", {index({7}, 5)}, classes(5, "bf16")},
                     {"f16", {index({7}, 5)}, classes(5, "f16")},
                     {"i32", {index({7}, 5)}, classes(5, "i32")},
                     {"scalar", {index({}, 5)}, classes(5, "f32")},
                     {"empty", {index({0}, 5)}, classes(5, "f32")},
                     {"threads", {index({900}, 64)}, classes(64, "f32"), {}, true}},
           .dtypes = {GESTALT_F32},
           .gradient = false,
           .any_rank = true,
           .any_size = {0},
           .grows = {{{"", {index({900}, 64)}, classes(64, "f32")}, {"fewer", {index({9}, 64)}, classes(64, "f32")}}},
           .bad_values = {{0, 5, "a class beyond the last"}, {0, -1, "a negative class"}}}};
}

const Family kFamily("index", describe);

}  // namespace

}  // namespace gestalt::harness
