#include <algorithm>
#include <cmath>

#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

std::vector<Values> rotary(const Inputs& in) {
  const Values& x = in[0];
  const bool table = in.has(2);
  const int64_t n = x.dim(1), d = x.dim(2), asked = in.attrs.i64("dims");
  const int64_t dims = table ? in[2].dim(1) : asked ? asked : d;
  const bool interleaved = in.attrs.boolean("interleaved");
  Values y = x;
  for (int64_t row = 0; row < x.dim(0) * n; ++row) {
    for (int64_t i = 0; i < dims / 2; ++i) {
      const double sense = in.attrs.boolean("inverse") ? -1 : 1;
      const double angle = table ? 0
                                 : in[1][row / n] * std::pow(in.attrs.f64("theta"),
                                                             -2.0 * static_cast<double>(i) / static_cast<double>(dims));
      const double cosine = table ? in[2][row / n * dims + i] : std::cos(angle);
      const double sine = sense * (table ? in[2][row / n * dims + dims / 2 + i] : std::sin(angle));
      const int64_t a = row * d + (interleaved ? 2 * i : i), b = row * d + (interleaved ? 2 * i + 1 : i + dims / 2);
      y[a] = x[a] * cosine - x[b] * sine;
      y[b] = x[a] * sine + x[b] * cosine;
    }
  }
  return {y};
}

core::Attrs turn(int64_t dims, bool interleaved, bool inverse, double theta = 1e4) {
  return {{"dims", dims}, {"interleaved", interleaved}, {"inverse", inverse}, {"theta", theta}};
}
Case turned(std::string name, Shape s, core::Attrs attrs, uint32_t type = GESTALT_I32, bool large = false) {
  return {std::move(name), {real(s), index({s[0]}, 2000, type)}, std::move(attrs), {}, large};
}

Case by_table(std::string name, Shape s, int64_t dims, core::Attrs attrs) {
  return {std::move(name), {real(s), absent(), wide({s[0], dims}).constant()}, std::move(attrs)};
}

constexpr double kPi = 3.14159265358979323846;

// As Hugging Face's modeling_rope_utils has it.
std::vector<Values> rotary_table(const Inputs& in) {
  const core::Attrs& a = in.attrs;
  const std::string& kind = a.str("kind");
  const int64_t dims = a.i64("dims"), half = dims / 2;
  const auto original = static_cast<double>(a.i64("original_max"));
  const double factor = a.f64("factor");
  double theta = a.f64("theta"), scale = a.f64("attention_factor"), longest = 0, rule = 1;
  for (double p : in[0].v) longest = std::max(longest, p + 1);
  const auto d = static_cast<double>(dims);
  if (kind == "dynamic" && longest > original)
    theta *= std::pow(factor * longest / original - (factor - 1), d / (d - 2));
  auto turning = [&](double turns) { return d * std::log(original / (turns * 2 * kPi)) / (2 * std::log(theta)); };
  auto mscale = [&](double m) { return factor <= 1 ? 1 : 0.1 * m * std::log(factor) + 1; };
  Values y({in[0].size(), dims});
  for (int64_t i = 0; i < half; ++i) {
    double f = std::pow(theta, -2.0 * static_cast<double>(i) / d);
    if (kind == "linear") f /= factor;
    if (kind == "llama3") {
      const double low = a.f64("low_freq_factor"), high = a.f64("high_freq_factor"), wave = 2 * kPi / f;
      const double smooth = (original / wave - low) / (high - low);
      if (wave > original / low)
        f /= factor;
      else if (wave >= original / high)
        f = (1 - smooth) * f / factor + smooth * f;
    }
    if (kind == "yarn") {
      double low = turning(a.f64("beta_fast")), high = turning(a.f64("beta_slow"));
      if (a.boolean("truncate")) {
        low = std::floor(low);
        high = std::ceil(high);
      }
      low = std::max(low, 0.0);
      high = std::min(high, d - 1);
      if (low == high) high += 0.001;
      const double ramp = std::min(1.0, std::max(0.0, (static_cast<double>(i) - low) / (high - low)));
      f = f / factor * ramp + f * (1 - ramp);
      const double m = a.f64("mscale"), all = a.f64("mscale_all_dim");
      rule = m != 0 && all != 0 ? mscale(m) / mscale(all) : mscale(1);
    }
    if (kind == "longrope") {
      const auto& by = std::get<std::vector<double>>(*a.find(longest > original ? "long_factor" : "short_factor"));
      f /= by[static_cast<size_t>(i)];
      rule = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(original));
    }
    for (int64_t t = 0; t < in[0].size(); ++t) {
      y[t * dims + i] = (scale != 0 ? scale : rule) * std::cos(in[0][t] * f);
      y[t * dims + half + i] = (scale != 0 ? scale : rule) * std::sin(in[0][t] * f);
    }
  }
  return {y};
}

Case table(std::string name, core::Attrs attrs, int64_t tokens = 7, uint32_t type = GESTALT_I32) {
  attrs.set("dims", int64_t{8});
  if (!attrs.find("dtype")) attrs.set("dtype", std::string("f32"));
  return {std::move(name), {index({tokens}, 200, type)}, std::move(attrs), {}, tokens > 100};
}
core::Attrs kind(std::string name, int64_t original, double factor, core::Attrs more = {}) {
  more.set("kind", std::move(name));
  more.set("original_max", original);
  more.set("factor", factor);
  return more;
}

// transformers' T5Attention._relative_position_bucket; ahead is key - query.
int64_t bucket(int64_t ahead, int64_t buckets, const core::Attrs& a) {
  const auto far = static_cast<double>(a.i64("max_distance"));
  int64_t first = 0, gap = std::max<int64_t>(-ahead, 0);
  if (a.boolean("bidirectional")) {
    buckets /= 2;
    first = ahead > 0 ? buckets : 0;
    gap = std::abs(ahead);
  }
  const int64_t exact = buckets / 2;
  if (gap < exact) return first + gap;
  const float steps = std::log(static_cast<float>(gap) / static_cast<float>(exact)) /
                      static_cast<float>(std::log(far / static_cast<double>(exact))) *
                      static_cast<float>(buckets - exact);
  return first + std::min(buckets - 1, exact + static_cast<int64_t>(steps));
}
std::vector<Values> relative_bias(const Inputs& in) {
  const int64_t reach = in.attrs.i64("reach"), heads = in[0].dim(1);
  Values y({heads, 2 * reach + 1});
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = -reach; i <= reach; ++i)
      y[h * (2 * reach + 1) + reach + i] = in[0][bucket(i, in[0].dim(0), in.attrs) * heads + h];
  return {y};
}
std::vector<Values> relative_bias_bwd(const Inputs& in) {
  const int64_t heads = in[0].dim(0), n = in[0].dim(1), buckets = in.attrs.i64("buckets");
  Values d({buckets, heads});
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < n; ++i) d[bucket(i - n / 2, buckets, in.attrs) * heads + h] += in[0][h * n + i];
  return {d};
}
std::vector<Values> alibi(const Inputs& in) {
  const int64_t reach = in.attrs.i64("reach"), heads = in.attrs.i64("heads");
  Values y({heads, 2 * reach + 1});
  int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  for (int64_t h = 0; h < heads; ++h) {
    const auto base = static_cast<double>(power);
    const double slope = h < power ? std::pow(2.0, -8.0 * static_cast<double>(h + 1) / base)
                                   : std::pow(2.0, -4.0 * static_cast<double>(2 * (h - power) + 1) / base);
    for (int64_t i = -reach; i <= reach; ++i)
      y[h * (2 * reach + 1) + reach + i] = -slope * static_cast<double>(std::abs(i));
  }
  return {y};
}
core::Attrs buckets(bool both, int64_t far, core::Attrs more) {
  more.set("bidirectional", both);
  more.set("max_distance", far);
  return more;
}
Case slopes(std::string name, int64_t heads, int64_t reach, const char* dtype) {
  return {std::move(name), {}, {{"heads", heads}, {"reach", reach}, {"dtype", std::string(dtype)}}};
}

std::vector<Description> describe() {
  return {
      {.op = "core.rotary",
       .reference = rotary,
       .cases = {turned("half", {5, 2, 8}, turn(0, false, false)),
                 turned("interleaved", {5, 2, 8}, turn(0, true, false)),
                 turned("inverse", {5, 2, 8}, turn(0, false, true)),
                 turned("partial", {5, 2, 8}, turn(4, false, false)),
                 turned("partial, interleaved", {5, 2, 10}, turn(6, true, true, 500)),
                 turned("i64 positions", {5, 2, 8}, turn(0, false, false), GESTALT_I64),
                 by_table("table", {5, 2, 8}, 8, turn(0, false, false)),
                 by_table("partial table, inverse", {5, 2, 8}, 4, turn(4, true, true)),
                 turned("empty", {0, 2, 8}, turn(0, false, false)),
                 turned("threads", {300, 4, 32}, turn(0, false, false), GESTALT_I32, true),
                 turned("whole chunks, partial", {9, 3, 48}, turn(32, false, true), GESTALT_I32, true)},
       .loosen = 10,
       .any_size = {0},
       .grows = {{turned("", {300, 4, 32}, turn(0, false, false)),
                  turned("fewer tokens", {9, 4, 32}, turn(0, false, false))}},
       .speed = turned("speed", {1024, 8, 64}, turn(0, false, false))},
      {.op = "core.rotary_table",
       .reference = rotary_table,
       .cases = {table("default", {}),
                 table("theta, f64, i64 positions", {{"theta", 5e5}, {"dtype", std::string("f64")}}, 7, GESTALT_I64),
                 table("linear", kind("linear", 0, 4)), table("dynamic, long", kind("dynamic", 16, 2)),
                 table("dynamic, short", kind("dynamic", 4096, 2)), table("yarn", kind("yarn", 64, 4)),
                 table("yarn, untruncated", kind("yarn", 64, 4, {{"truncate", false}, {"beta_fast", 8.0}})),
                 table("yarn, mscale", kind("yarn", 64, 40, {{"mscale", 0.7}, {"mscale_all_dim", 1.2}})),
                 table("yarn, attention factor", kind("yarn", 64, 4, {{"attention_factor", 1.5}})),
                 table("llama3", kind("llama3", 64, 8, {{"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}})),
                 table("longrope, long", kind("longrope", 16, 8,
                                              {{"short_factor", std::vector<double>{1, 1, 2, 3}},
                                               {"long_factor", std::vector<double>{1, 2, 4, 8}}})),
                 table("longrope, short", kind("longrope", 4096, 8,
                                               {{"short_factor", std::vector<double>{1, 1, 2, 3}},
                                                {"long_factor", std::vector<double>{1, 2, 4, 8}}})),
                 table("empty", {}, 0), table("threads", {}, 900)},
       .dtypes = {GESTALT_F32},
       .gradient = false,
       .loosen = 10,
       .any_size = {0},
       .grows = {{table("", {}, 900), table("fewer tokens", {}, 9)}},
       .speed = table("speed", {}, 4096)},
      {.op = "core.relative_bias",
       .reference = relative_bias,
       .cases = {{"small", {real({8, 3})}, buckets(false, 20, {{"reach", int64_t{30}}})},
                 {"bidirectional", {real({8, 3})}, buckets(true, 20, {{"reach", int64_t{30}}})},
                 {"as in t5", {real({32, 2})}, buckets(true, 128, {{"reach", int64_t{200}}})},
                 {"one distance", {real({8, 3})}, buckets(false, 20, {{"reach", int64_t{0}}})}},
       .any_size = {0}},
      {.op = "core.relative_bias_bwd",
       .reference = relative_bias_bwd,
       .cases = {{"small", {real({3, 61})}, buckets(false, 20, {{"buckets", int64_t{8}}})},
                 {"bidirectional", {real({3, 61})}, buckets(true, 20, {{"buckets", int64_t{8}}})},
                 {"as in t5", {real({2, 401})}, buckets(true, 128, {{"buckets", int64_t{32}}})}},
       .gradient = false,
       .loosen = 10},
      {.op = "core.alibi",
       .reference = alibi,
       .cases = {slopes("8 heads", 8, 5, "f32"), slopes("12 heads", 12, 5, "f64"), slopes("bf16", 4, 5, "bf16"),
                 slopes("f16", 1, 5, "f16")},
       .dtypes = {GESTALT_F32},
       .gradient = false}};
}

const Family kFamily("position", describe);

}  // namespace

}  // namespace gestalt::harness
