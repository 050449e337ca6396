#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

std::vector<Values> matmul(const Inputs& in) {
  const bool ta = in.attrs.boolean("trans_a"), tb = in.attrs.boolean("trans_b");
  const Values &a = in[0], &b = in[1];
  const int64_t m = a.dim(ta ? -1 : -2), k = a.dim(ta ? -2 : -1), n = b.dim(tb ? -2 : -1);
  Shape shape = a.shape;
  shape[shape.size() - 2] = m;
  shape[shape.size() - 1] = n;
  Values y(shape);
  int64_t batch = 1;
  for (size_t d = 0; d + 2 < shape.size(); ++d) batch *= shape[d];
  for (int64_t s = 0; s < batch; ++s)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += a[s * m * k + (ta ? l * m + i : i * k + l)] * b[s * k * n + (tb ? j * k + l : l * n + j)];
        y[(s * m + i) * n + j] = sum;
      }
  return {y};
}

std::vector<Values> linear(const Inputs& in) {
  const Values &x = in[0], &w = in[1];
  const int64_t t = x.dim(0), k = x.dim(1), o = w.dim(0);
  Values y({t, o});
  for (int64_t i = 0; i < t; ++i)
    for (int64_t j = 0; j < o; ++j) {
      double sum = in.has(2) ? in[2][j] : 0;
      for (int64_t l = 0; l < k; ++l) sum += x[i * k + l] * w[j * k + l];
      y[i * o + j] = sum;
    }
  return {y};
}

Case product(std::string name, Shape batch, int64_t m, int64_t n, int64_t k, bool ta, bool tb, bool large = false) {
  auto shape = [&](int64_t rows, int64_t columns, bool turned) {
    Shape s = batch;
    s.push_back(turned ? columns : rows);
    s.push_back(turned ? rows : columns);
    return s;
  };
  return {
      std::move(name), {real(shape(m, k, ta)), real(shape(k, n, tb))}, {{"trans_a", ta}, {"trans_b", tb}}, {}, large};
}

Case projection(std::string name, int64_t t, int64_t i, int64_t o, bool bias, bool large = false) {
  return {std::move(name), {real({t, i}), real({o, i}), bias ? real({o}) : absent()}, {}, {}, large};
}

std::vector<Description> describe() {
  return {
      {.op = "core.matmul",
       .reference = matmul,
       .cases = {product("small", {}, 5, 7, 3, false, false), product("a transposed", {}, 5, 7, 3, true, false),
                 product("b transposed", {}, 5, 7, 3, false, true), product("both transposed", {}, 5, 7, 3, true, true),
                 product("one row", {}, 1, 9, 8, false, true), product("one column", {}, 9, 1, 8, false, false),
                 product("stack", {3}, 4, 5, 6, false, true), product("stack of stacks", {2, 3}, 2, 3, 4, true, false),
                 product("no rows", {}, 0, 4, 3, false, false), product("empty sum", {}, 3, 4, 0, false, true),
                 product("empty stack", {0}, 3, 4, 5, false, false),
                 product("tiles", {}, 131, 97, 301, false, false, true),
                 product("tiles, turned", {}, 131, 97, 301, true, true, true)},
       .loosen = 10,
       .any_size = {1},
       .grows = {{product("", {}, 131, 97, 301, false, true), product("fewer rows", {}, 13, 97, 301, false, true)},
                 {product("", {}, 131, 97, 301, false, false), product("one row", {}, 1, 97, 301, false, false)}},
       .speed = product("speed", {}, 512, 512, 512, false, true),
       .flops = 2.0 * 512 * 512 * 512},
      {.op = "core.linear",
       .reference = linear,
       .cases = {projection("small", 5, 7, 6, true), projection("no bias", 5, 7, 6, false),
                 projection("one row", 1, 8, 5, true), projection("empty", 0, 4, 3, true),
                 projection("tiles", 131, 301, 97, true, true)},
       .loosen = 10,
       .inner_roundings = {{"gestalt.cublaslt", 2}},  // it may round the sum before it adds the bias
       .grows = {{projection("", 131, 301, 97, true), projection("fewer rows", 3, 301, 97, true)}},
       .speed = projection("speed", 512, 512, 512, false),
       .flops = 2.0 * 512 * 512 * 512}};
}

const Family kFamily("matrix", describe);

}  // namespace

}  // namespace gestalt::harness
