#include <algorithm>

#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

const std::vector<uint32_t> kEvery = {GESTALT_F64, GESTALT_F32, GESTALT_BF16, GESTALT_F16,
                                      GESTALT_I32, GESTALT_I64, GESTALT_U8,   GESTALT_BOOL};

std::vector<Values> same(const Inputs& in) { return {in[0]}; }

// Bool holds 0 and 1.
Arg any(Shape s) { return real(std::move(s), 0, 0.014); }

std::vector<Values> cast(const Inputs& in) {
  Values y = in[0];
  const uint32_t dtype = core::parse_dtype(in.attrs.str("dtype"));
  if (!core::is_float(dtype)) round_to(dtype, y);  // the rounding of floats is for the comparison
  return {y};
}

std::vector<Values> fill(const Inputs& in) {
  Values y(in.attrs.i64_list("shape"));
  std::fill(y.v.begin(), y.v.end(), in.attrs.f64("value"));
  round_to(core::parse_dtype(in.attrs.str("dtype")), y);
  return {y};
}

// Elements before and after a dimension: x is [outer, size, inner].
struct Split {
  int64_t outer = 1, inner = 1;
  Split(const Shape& shape, int64_t dim) {
    for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i)
      (i < dim ? outer : i > dim ? inner : outer) *= i == dim ? 1 : shape[static_cast<size_t>(i)];
  }
};

std::vector<Values> concat(const Inputs& in) {
  Shape shape = in[0].shape;
  int64_t dim = in.attrs.i64("dim");
  if (dim < 0) dim += in[0].ndim();
  auto& total = shape[static_cast<size_t>(dim)] = 0;
  for (const Values& x : in.in) total += x.dim(dim);
  Values y(shape);
  const Split s(shape, dim);
  int64_t at = 0;
  for (const Values& x : in.in) {
    const int64_t size = x.dim(dim);
    for (int64_t o = 0; o < s.outer; ++o)
      for (int64_t k = 0; k < size * s.inner; ++k) y[(o * total + at) * s.inner + k] = x[o * size * s.inner + k];
    at += size;
  }
  return {y};
}

std::vector<Values> pad(const Inputs& in) {
  Shape shape = in[0].shape;
  int64_t dim = in.attrs.i64("dim");
  if (dim < 0) dim += in[0].ndim();
  const int64_t size = in[0].dim(dim), before = in.attrs.i64("before");
  const int64_t total = shape[static_cast<size_t>(dim)] += before + in.attrs.i64("after");
  Values y(shape);
  const Split s(shape, dim);
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t k = 0; k < size * s.inner; ++k) y[(o * total + before) * s.inner + k] = in[0][o * size * s.inner + k];
  return {y};
}

core::Attrs to(const char* dtype) { return {{"dtype", std::string(dtype)}}; }
core::Attrs at(int64_t dim) { return {{"dim", dim}}; }
core::Attrs around(int64_t dim, int64_t before, int64_t after) {
  return {{"dim", dim}, {"before", before}, {"after", after}};
}
core::Attrs filled(Shape shape, const char* dtype, double value) {
  return {{"shape", shape}, {"dtype", std::string(dtype)}, {"value", value}};
}

Description describe_cast() {
  Description d{.op = "core.cast", .reference = cast, .cases = {}, .dtypes = kFloatsAndIndices};
  for (const char* dtype : {"f64", "f32", "bf16", "f16"}) {
    d.cases.push_back({std::string("to ") + dtype, {real({3, 4, 5})}, to(dtype)});
    d.cases.push_back({std::string("many to ") + dtype, {real({40, 1031})}, to(dtype), {}, true});
  }
  for (const char* dtype : {"i32", "i64"})
    d.cases.push_back({std::string("to ") + dtype, {real({3, 5}, 2, 90).constant()}, to(dtype)});
  d.cases.push_back({"empty", {real({0, 2})}, to("f32")});
  d.cases.push_back({"scalar", {real({})}, to("f32")});
  d.any_dtype = d.any_rank = true;
  d.grows = {{d.cases[3], {"fewer rows", {real({7, 1031})}, to("f32")}}};
  d.speed = Case{"speed", {real({1024, 1024})}, to("f32")};
  return d;
}

std::vector<Description> describe() {
  return {{.op = "core.copy",
           .reference = same,
           .cases = {{"small", {any({3, 4, 5})}, {}},
                     {"scalar", {any({})}, {}},
                     {"empty", {any({3, 0, 2})}, {}},
                     {"eight dimensions", {any({2, 1, 2, 1, 3, 1, 2, 2})}, {}},
                     {"threads", {any({40, 1031})}, {}, {}, true}},
           .dtypes = kEvery,
           .any_dtype = true,
           .any_rank = true,
           .grows = {{{"", {any({40, 1031})}, {}}, {"fewer rows", {any({7, 1031})}, {}}}},
           .speed = Case{"speed", {any({1024, 1024})}, {}}},
          describe_cast(),
          {.op = "core.fill",
           .reference = fill,
           .cases = {{"f32", {}, filled({3, 5}, "f32", 0.3)},
                     {"f64", {}, filled({3, 5}, "f64", 0.3)},
                     {"bf16", {}, filled({7}, "bf16", -1.5)},
                     {"f16", {}, filled({7}, "f16", -1.5)},
                     {"i32", {}, filled({2, 2, 2}, "i32", -7)},
                     {"i64", {}, filled({9}, "i64", 1e12)},
                     {"u8", {}, filled({9}, "u8", 200)},
                     {"bool", {}, filled({9}, "bool", 1)},
                     {"scalar", {}, filled({}, "f32", 1)},
                     {"empty", {}, filled({0, 3}, "f32", 1)},
                     {"threads", {}, filled({40, 1031}, "f32", 2), {}, true}},
           .dtypes = {GESTALT_F32},
           .gradient = false},
          {.op = "core.concat",
           .reference = concat,
           .cases = {{"rows", {real({3, 4}), real({2, 4}), real({1, 4})}, at(0)},
                     {"columns", {real({3, 4}), real({3, 1})}, at(-1)},
                     {"middle", {real({2, 3, 4}), real({2, 2, 4})}, at(1)},
                     {"one", {real({3, 4})}, at(1)},
                     {"an empty part", {real({3, 4}), real({0, 4})}, at(0)},
                     {"empty", {real({0, 4}), real({0, 3})}, at(1)},
                     {"threads", {real({20, 1031}), real({21, 1031})}, at(0), {}, true}},
           .dtypes = kFloatsAndIndices,
           .any_dtype = true,
           .grows = {{{"", {real({20, 1031}), real({21, 1031})}, at(0)},
                      {"fewer rows", {real({5, 1031}), real({2, 1031})}, at(0)}}},
           .speed = Case{"speed", {real({1024, 512}), real({1024, 512})}, at(1)}},
          {.op = "core.pad",
           .reference = pad,
           .cases = {{"rows", {real({3, 4})}, around(0, 1, 2)},
                     {"columns", {real({3, 4})}, around(-1, 2, 0)},
                     {"middle", {real({2, 3, 4})}, around(1, 0, 1)},
                     {"nothing", {real({3, 4})}, around(0, 0, 0)},
                     {"empty", {real({0, 4})}, around(0, 2, 1)},
                     {"threads", {real({40, 1031})}, around(1, 3, 5), {}, true}},
           .dtypes = kFloatsAndIndices,
           .any_dtype = true,
           .any_rank = true,
           .speed = Case{"speed", {real({1024, 1024})}, around(0, 16, 16)}}};
}

const Family kFamily("movement", describe);

}  // namespace

}  // namespace gestalt::harness
