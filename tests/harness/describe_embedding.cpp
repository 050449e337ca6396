#include <algorithm>
#include <cmath>

#include "tests/harness/description.h"

namespace gestalt::harness {

namespace {

std::vector<Values> embedding(const Inputs& in) {
  const int64_t h = in[1].dim(1);
  Values y({in[0].size(), h});
  for (int64_t i = 0; i < y.size(); ++i) y[i] = in[1][static_cast<int64_t>(in[0][i / h]) * h + i % h];
  return {y};
}

std::vector<Values> embedding_bwd(const Inputs& in) {
  const int64_t h = in[1].dim(1);
  Values dw({in.attrs.i64("vocab"), h});
  for (int64_t i = 0; i < in[1].size(); ++i) dw[static_cast<int64_t>(in[0][i / h]) * h + i % h] += in[1][i];
  return {dw};
}

double logsumexp(const Values& x, int64_t row) {
  const int64_t n = x.dim(1);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[row * n + i]);
  return std::log(sum);
}

std::vector<Values> cross_entropy(const Inputs& in) {
  Values loss{Shape{}}, lse({in[0].dim(0)});
  for (int64_t t = 0; t < lse.size(); ++t) {
    lse[t] = logsumexp(in[0], t);
    if (in[2][t] == 0) continue;
    const double s = in.attrs.f64("label_smoothing");
    const int64_t n = in[0].dim(1);
    loss[0] += in[2][t] * (lse[t] - (1 - s) * in[0][t * n + static_cast<int64_t>(in[1][t])]);
    for (int64_t i = 0; i < n; ++i) loss[0] -= in[2][t] * s / static_cast<double>(n) * in[0][t * n + i];
  }
  return {loss, lse};
}

std::vector<Values> cross_entropy_bwd(const Inputs& in) {
  const int64_t n = in[0].dim(1);
  Values d(in[0].shape);
  for (int64_t i = 0; i < d.size(); ++i) {
    const int64_t t = i / n;
    if (in[2][t] == 0) continue;
    const double s = in.attrs.f64("label_smoothing");
    const double aim = s / static_cast<double>(n) + (static_cast<int64_t>(in[1][t]) == i % n ? 1 - s : 0);
    d[i] = in[2][t] * in[4][0] * (std::exp(in[0][i] - in[3][t]) - aim);
  }
  return {d};
}

// One rank's part of the classes: `first` columns before it and others after it are on other ranks, whose sums lse has.
std::vector<Values> cross_entropy_part(const Inputs& in) {
  const int64_t t = in[0].dim(0), n = in[0].dim(1), first = in.attrs.i64("first");
  Values max({t}), sum({t}), aim({t}), total({t});
  for (int64_t r = 0; r < t; ++r) {
    max[r] = in[0][r * n];
    for (int64_t i = 0; i < n; ++i) {
      max[r] = std::max(max[r], in[0][r * n + i]);
      total[r] += in[0][r * n + i];
      if (static_cast<int64_t>(in[1][r]) == first + i) aim[r] = in[0][r * n + i];
    }
    for (int64_t i = 0; i < n; ++i) sum[r] += std::exp(in[0][r * n + i] - max[r]);
  }
  return {max, sum, aim, total};
}

std::vector<Values> cross_entropy_parallel_bwd(const Inputs& in) {
  const int64_t n = in[0].dim(1), first = in.attrs.i64("first");
  Values d(in[0].shape);
  for (int64_t i = 0; i < d.size(); ++i) {
    const int64_t t = i / n;
    if (in[2][t] == 0) continue;
    const double s = in.attrs.f64("label_smoothing");
    const double aim = s / static_cast<double>(in.attrs.i64("classes")) +
                       (static_cast<int64_t>(in[1][t]) == first + i % n ? 1 - s : 0);
    d[i] = in[2][t] * in[4][0] * (std::exp(in[0][i] - in[3][t]) - aim);
  }
  return {d};
}

// Every third token is not trained: weight 0, a label of -1, which nobody may read.
Case losses(std::string name, int64_t t, int64_t v, uint32_t ids = GESTALT_I32, bool large = false) {
  Arg labels{{t}, [v](Random& r, int64_t i) { return i % 3 == 2 ? -1.0 : static_cast<double>(r.below(v)); }};
  Arg weights{{t}, [](Random& r, int64_t i) { return i % 3 == 2 ? 0.0 : r.uniform(0.5, 2); }};
  return {std::move(name),
          {real({t, v}, -3, 3), std::move(labels).as(ids).ordered(), std::move(weights).as(GESTALT_F32).ordered()},
          {},
          {},
          large};
}
Case losses_bwd(std::string name, int64_t t, int64_t v, bool large = false) {
  Case c = losses(std::move(name), t, v, GESTALT_I32, large);
  c.in.push_back(wide({t}).ordered());
  c.in.push_back(wide({}, 0.5, 2));
  c.derive = [](std::vector<Values>& in) {
    for (int64_t i = 0; i < in[3].size(); ++i) in[3][i] = logsumexp(in[0], i);
  };
  return c;
}

Case smoothed(Case c) {
  c.name += ", smoothed";
  c.attrs.set("label_smoothing", 0.1);
  return c;
}

// The case's classes as a part that begins with `first` of `classes`; labels go over all of them.
Case part(Case c, int64_t first, int64_t classes) {
  c.in[1].fill = [classes](Random& r, int64_t i) { return i % 3 == 2 ? -1.0 : static_cast<double>(r.below(classes)); };
  c.attrs.set("first", first);
  c.attrs.set("classes", classes);
  return c;
}
// All classes on the one rank of an axis.
Case alone(Case c, int64_t classes) {
  c.attrs.set("axis", std::string("tp"));
  return part(std::move(c), 0, classes);
}

core::Attrs vocab(int64_t v) { return {{"vocab", v}}; }

std::vector<Description> describe() {
  return {{.op = "core.embedding",
           .reference = embedding,
           .cases = {{"small", {index({9}, 5), real({5, 3})}, {}},
                     {"i64", {index({9}, 5, GESTALT_I64), real({5, 3})}, {}},
                     {"empty", {index({0}, 5), real({5, 3})}, {}},
                     {"threads", {index({300}, 50), real({50, 257})}, {}, {}, true}},
           .any_size = {0, 1},
           .grows = {{{"", {index({300}, 50), real({50, 257})}, {}},
                      {"fewer tokens", {index({11}, 50), real({50, 257})}, {}}}},
           .bad_values = {{0, 5, "id beyond the table"}, {0, -1, "negative id"}, {0, 2147483647, "largest id"}},
           .speed = Case{"speed", {index({4096}, 1000), real({1000, 512})}, {}}},
          {.op = "core.embedding_bwd",
           .reference = embedding_bwd,
           .cases = {{"small", {index({9}, 5), real({9, 3})}, vocab(5)},
                     {"i64", {index({9}, 5, GESTALT_I64), real({9, 3})}, vocab(5)},
                     {"empty", {index({0}, 5), real({0, 3})}, vocab(5)},
                     {"threads", {index({300}, 50), real({300, 257})}, vocab(50), {}, true}},
           .gradient = false,
           .loosen = 10,
           .any_size = {1},
           .grows = {{{"", {index({300}, 50), real({300, 257})}, vocab(50)},
                      {"fewer tokens", {index({11}, 50), real({11, 257})}, vocab(50)}}},
           .bad_values = {{0, 5, "id beyond the table"}, {0, -1, "negative id"}},
           .speed = Case{"speed", {index({4096}, 1000), real({4096, 512})}, vocab(1000)}},
          {.op = "core.cross_entropy",
           .reference = cross_entropy,
           .cases = {losses("small", 7, 11), losses("i64 labels", 7, 11, GESTALT_I64), losses("one class", 2, 1),
                     losses("empty", 0, 11), smoothed(losses("small", 7, 11)),
                     losses("threads", 200, 263, GESTALT_I32, true),
                     losses("whole chunks", 20, 1000, GESTALT_I32, true),
                     smoothed(losses("whole chunks, many", 5, 9000, GESTALT_I32, true))},
           .loosen = 10,
           .any_size = {0},
           .grows = {{losses("", 200, 263), losses("fewer tokens", 9, 263)}},
           .bad_values = {{1, 11, "label beyond the classes"}, {1, -100, "negative label of a trained token"}},
           .speed = losses("speed", 1024, 1024)},
          {.op = "core.cross_entropy_bwd",
           .reference = cross_entropy_bwd,
           .cases = {losses_bwd("small", 7, 11), losses_bwd("one class", 2, 1), losses_bwd("empty", 0, 11),
                     smoothed(losses_bwd("small", 7, 11)), losses_bwd("threads", 200, 263, true),
                     losses_bwd("whole chunks", 20, 1000, true),
                     smoothed(losses_bwd("whole chunks, many", 5, 9000, true))},
           .gradient = false,
           .loosen = 10,
           .any_size = {0},
           .grows = {{losses_bwd("", 200, 263), losses_bwd("fewer tokens", 9, 263)}},
           .bad_values = {{1, 11, "label beyond the classes"}},
           .speed = losses_bwd("speed", 1024, 1024)},
          {.op = "core.cross_entropy_part",
           .reference = cross_entropy_part,
           .cases = {part(losses("middle", 7, 5), 3, 11), part(losses("all", 7, 11), 0, 11),
                     part(losses("one class", 2, 1), 1, 3), part(losses("empty", 0, 11), 0, 11),
                     part(losses("threads", 200, 263, GESTALT_I32, true), 100, 500),
                     part(losses("whole chunks", 20, 1000, GESTALT_I32, true), 100, 2000)},
           .gradient = false,
           .loosen = 10,
           .any_size = {0},
           .grows = {{part(losses("", 200, 263), 100, 500), part(losses("fewer tokens", 9, 263), 100, 500)}},
           .bad_values = {{1, 11, "label beyond the classes"}},
           .speed = part(losses("speed", 1024, 1024), 0, 1024)},
          {.op = "core.cross_entropy_parallel",
           .reference = cross_entropy,
           .cases = {alone(losses("small", 7, 11), 11), alone(losses("one class", 2, 1), 1),
                     alone(losses("empty", 0, 11), 11), alone(smoothed(losses("small", 7, 11)), 11)},
           .loosen = 10,
           .any_size = {0}},
          {.op = "core.cross_entropy_parallel_bwd",
           .reference = cross_entropy_parallel_bwd,
           .cases = {part(losses_bwd("middle", 7, 5), 3, 11), part(losses_bwd("empty", 0, 11), 0, 11),
                     smoothed(part(losses_bwd("middle", 7, 5), 3, 11)),
                     part(losses_bwd("threads", 200, 263, true), 100, 500),
                     smoothed(part(losses_bwd("whole chunks", 20, 1000, true), 100, 2000))},
           .gradient = false,
           .loosen = 10,
           .any_size = {0},
           .grows = {{part(losses_bwd("", 200, 263), 100, 500), part(losses_bwd("fewer tokens", 9, 263), 100, 500)}},
           .bad_values = {{1, 11, "label beyond the classes"}},
           .speed = part(losses_bwd("speed", 1024, 1024), 0, 1024)}};
}

const Family kFamily("embedding", describe);

}  // namespace

}  // namespace gestalt::harness
