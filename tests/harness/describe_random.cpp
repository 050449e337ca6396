#include "gestalt/philox.h"
#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

// The rule of philox.h, column by column.
std::vector<Values> dropout(const Inputs& in) {
  const Values& x = in[0];
  const int64_t n = x.dim(1);
  const double p = in.attrs.f64("p");
  auto word = [](double w) { return static_cast<uint32_t>(static_cast<int64_t>(w)); };
  auto wide = [&](int64_t i) { return word(in[2][i]) | uint64_t{word(in[2][i + 1])} << 32; };
  Values y(x.shape);
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t t = i / n;
    const auto column = static_cast<uint32_t>(in.attrs.i64("column0") + i % n);
    const PhiloxBlock b = philox_token(wide(0), wide(2), word(in[1][2 * t]), word(in[1][2 * t + 1]),
                                       static_cast<uint32_t>(in.attrs.i64("use")), column / 4);
    const bool dropped =
        static_cast<double>(b.word[column % 4] >> 8) * 0x1p-24 < static_cast<double>(philox_threshold(p)) * 0x1p-24;
    y[i] = dropped ? 0 : x[i] / (1 - p);
  }
  return {y};
}

Case dropped(std::string name, int64_t t, int64_t n, double p, int64_t use, int64_t column0, bool large = false) {
  return {std::move(name),
          {real({t, n}), index({t, 2}, 5000), listed({4}, {-5, 7, 12, 0}, GESTALT_I32)},
          {{"p", p}, {"use", use}, {"column0", column0}},
          {},
          large};
}

// Element i, row by row; low and high, or mean and standard deviation.
template <bool normal>
std::vector<Values> drawn(const Inputs& in) {
  Values y(Shape(in.attrs.i64_list("shape").begin(), in.attrs.i64_list("shape").end()));
  auto word = [&](int64_t i) { return static_cast<uint32_t>(static_cast<int64_t>(in[0][i])); };
  const uint64_t seed = word(0) | uint64_t{word(1)} << 32, step = word(2) | uint64_t{word(3)} << 32;
  for (int64_t i = 0; i < y.size(); ++i) {
    const uint32_t bits =
        philox_tensor(seed, step, static_cast<uint32_t>(in.attrs.i64("use")), static_cast<uint64_t>(i / 4)).word[i % 4];
    if (normal)
      y[i] = in.attrs.f64("mean") + in.attrs.f64("std") * static_cast<double>(philox_normal_fixed(bits)) * 0x1p-28;
    else
      y[i] = in.attrs.f64("low") +
             (in.attrs.f64("high") - in.attrs.f64("low")) * static_cast<double>(philox_uniform(bits));
  }
  return {y};
}
Case draw(std::string name, Shape shape, const char* dtype, core::Attrs more = {}) {
  more.set("shape", shape);
  more.set("use", int64_t{3});
  more.set("dtype", std::string(dtype));
  return {std::move(name), {listed({4}, {-5, 7, 12, 1}, GESTALT_I32)}, std::move(more), {}, count_of(shape) > 1000};
}
Description draws(const char* name, Reference reference, core::Attrs range) {
  return {.op = name,
          .reference = std::move(reference),
          .cases = {draw("f32", {3, 5}, "f32"), draw("f64", {3, 5}, "f64"), draw("bf16", {7}, "bf16"),
                    draw("f16", {7}, "f16"), draw("scalar", {}, "f32"), draw("empty", {0, 3}, "f32"),
                    draw("range", {2, 9}, "f32", range), draw("threads", {41, 1031}, "f32", range)},
          .dtypes = {GESTALT_F32},
          .gradient = false};
}

std::vector<Description> describe() {
  return {{.op = "core.dropout",
           .reference = dropout,
           .cases = {dropped("small", 6, 9, 0.3, 2, 0), dropped("columns of a shard", 6, 9, 0.5, 4095, 6),
                     dropped("p of 0", 4, 5, 0, 0, 0), dropped("empty", 0, 5, 0.1, 0, 0),
                     dropped("threads", 60, 1031, 0.1, 1, 3, true), dropped("whole chunks", 7, 64, 0.3, 1, 8, true)},
           .loosen = 2,
           .any_size = {0},
           .grows = {{dropped("", 60, 1031, 0.1, 1, 3), dropped("fewer tokens", 7, 1031, 0.1, 1, 3)}},
           .speed = dropped("speed", 1024, 512, 0.1, 0, 0)},
          draws("core.uniform", drawn<false>, {{"low", -2.0}, {"high", 0.5}}),
          draws("core.normal", drawn<true>, {{"mean", 1.0}, {"std", 0.02}})};
}

const Family kFamily("random", describe);

}  // namespace

}  // namespace gestalt::harness
