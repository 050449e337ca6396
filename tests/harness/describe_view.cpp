#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

const std::vector<uint32_t> kTypes = {GESTALT_F64, GESTALT_F32, GESTALT_BF16, GESTALT_F16, GESTALT_I32};

std::vector<Values> reshape(const Inputs& in) {
  Shape shape = in.attrs.i64_list("shape");
  int64_t known = 1;
  for (int64_t d : shape) known *= d == INT64_MIN ? 1 : d;
  for (int64_t& d : shape)
    if (d == INT64_MIN) d = in[0].size() / known;
  return {Values(shape, in[0].v)};
}

// y at an index is x at the index that `from` makes of it.
template <class F>
Values gathered(const Values& x, Shape shape, F from) {
  Values y(shape);
  Shape at(shape.size());
  for (int64_t i = 0; i < y.size(); ++i) {
    int64_t rest = i;
    for (size_t d = shape.size(); d-- > 0;) {
      at[d] = rest % shape[d];
      rest /= shape[d];
    }
    const Shape source = from(at);
    int64_t offset = 0;
    for (size_t d = 0; d < source.size(); ++d) offset = offset * x.shape[d] + source[d];
    y[i] = x[offset];
  }
  return y;
}

size_t dim_of(const Inputs& in, const char* name) {
  const int64_t d = in.attrs.i64(name);
  return static_cast<size_t>(d < 0 ? d + in[0].ndim() : d);
}

std::vector<Values> transpose(const Inputs& in) {
  const size_t a = dim_of(in, "dim0"), b = dim_of(in, "dim1");
  Shape shape = in[0].shape;
  std::swap(shape[a], shape[b]);
  return {gathered(in[0], shape, [&](Shape at) {
    std::swap(at[a], at[b]);
    return at;
  })};
}

Values sliced(const Values& x, size_t dim, int64_t begin, int64_t end) {
  Shape shape = x.shape;
  shape[dim] = end - begin;
  return gathered(x, shape, [&](Shape at) {
    at[dim] += begin;
    return at;
  });
}

std::vector<Values> slice(const Inputs& in) {
  return {sliced(in[0], dim_of(in, "dim"), in.attrs.i64("begin"), in.attrs.i64("end"))};
}

std::vector<Values> split_parts(const Inputs& in) {
  std::vector<Values> out;
  int64_t at = 0;
  for (int64_t part : in.attrs.i64_list("parts")) {
    out.push_back(sliced(in[0], dim_of(in, "dim"), at, at + part));
    at += part;
  }
  return out;
}

std::vector<Values> broadcast(const Inputs& in) {
  const Values& x = in[0];
  const Shape shape = in.attrs.i64_list("shape");
  const size_t extra = shape.size() - x.shape.size();
  return {gathered(x, shape, [&](const Shape& at) {
    Shape source;
    for (size_t d = 0; d < x.shape.size(); ++d) source.push_back(x.shape[d] == 1 ? 0 : at[d + extra]);
    return source;
  })};
}

core::Attrs shaped(Shape s) { return {{"shape", s}}; }
core::Attrs dims(int64_t a, int64_t b) { return {{"dim0", a}, {"dim1", b}}; }
core::Attrs range(int64_t dim, int64_t begin, int64_t end) { return {{"dim", dim}, {"begin", begin}, {"end", end}}; }
core::Attrs parts(int64_t dim, Shape p) { return {{"dim", dim}, {"parts", p}}; }

std::vector<Description> describe() {
  return {{.op = "core.reshape",
           .reference = reshape,
           .cases = {{"merge", {real({4, 6})}, shaped({24})},  // of a transposed tensor: needs a copy
                     {"split", {real({4, 6})}, shaped({4, 2, 3})},
                     {"split the first", {real({4, 6})}, shaped({2, 2, 6})},
                     {"inferred", {real({4, 6})}, shaped({3, INT64_MIN})},
                     {"merge the last", {real({2, 3, 4})}, shaped({2, 12})},
                     {"merge the first", {real({2, 3, 4})}, shaped({6, 4})},
                     {"ones", {real({4, 1, 6})}, shaped({1, 4, 6, 1})},
                     {"scalar", {real({1, 1})}, shaped({})},
                     {"empty", {real({0, 6})}, shaped({2, 0, 3})}},
           .dtypes = kTypes,
           .any_dtype = true,
           .any_rank = true},
          {.op = "core.transpose",
           .reference = transpose,
           .cases = {{"matrix", {real({4, 6})}, dims(0, 1)},
                     {"last two", {real({2, 3, 4})}, dims(-1, -2)},
                     {"outer", {real({2, 3, 4})}, dims(0, 2)},
                     {"nothing", {real({2, 3})}, dims(1, 1)},
                     {"empty", {real({0, 3})}, dims(0, 1)}},
           .dtypes = kTypes,
           .any_dtype = true,
           .any_rank = true},
          {.op = "core.slice",
           .reference = slice,
           .cases = {{"rows", {real({5, 4})}, range(0, 1, 4)},
                     {"columns", {real({5, 4})}, range(-1, 1, 3)},
                     {"all", {real({5, 4})}, range(1, 0, 4)},
                     {"middle", {real({2, 5, 3})}, range(1, 2, 5)},
                     {"nothing", {real({5, 4})}, range(0, 2, 2)}},
           .dtypes = kTypes,
           .any_dtype = true,
           .any_rank = true},
          {.op = "core.split_parts",
           .reference = split_parts,
           .cases = {{"columns", {real({3, 8})}, parts(-1, {4, 2, 2})},
                     {"rows", {real({5, 3})}, parts(0, {1, 4})},
                     {"an empty part", {real({5, 3})}, parts(0, {5, 0})},
                     {"one", {real({2, 3})}, parts(1, {3})}},
           .dtypes = kTypes,
           .any_dtype = true,
           .any_rank = true},
          {.op = "core.broadcast",
           .reference = broadcast,
           .cases = {{"rows", {real({1, 4})}, shaped({3, 4})},
                     {"columns", {real({3, 1})}, shaped({3, 4})},
                     {"new dimensions", {real({4})}, shaped({2, 3, 4})},
                     {"scalar", {real({})}, shaped({2, 3})},
                     {"nothing", {real({3, 4})}, shaped({3, 4})},
                     {"middle", {real({2, 1, 3})}, shaped({2, 4, 3})}},
           .dtypes = kTypes,
           .any_dtype = true,
           .any_rank = true}};
}

const Family kFamily("view", describe);

}  // namespace

}  // namespace gestalt::harness
