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
                     {"wide", {real({5, 9001})}, over({1}), {}, true},
                     {"much to one", {real({41, 1031})}, over({}), {}, true}},
           .loosen = 40,
           .any_rank = true,
           .grows = {{{"", {real({701, 130})}, over({0})}, {"fewer rows", {real({33, 130})}, over({0})}}},
           .speed = Case{"speed", {real({1024, 1024})}, over({0})}},
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
