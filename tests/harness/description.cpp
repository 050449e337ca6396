#include "tests/harness/description.h"

#include <algorithm>

namespace gestalt::harness {

namespace {

std::vector<Family>& table() {
  static std::vector<Family> families;
  return families;
}

}  // namespace

Family::Family(std::string family_name, std::vector<Description> (*make_descriptions)())
    : name(std::move(family_name)), make(make_descriptions) {
  auto& all = table();
  all.insert(std::find_if(all.begin(), all.end(), [&](const Family& f) { return f.name > name; }), *this);
}

const std::vector<Family>& families() { return table(); }

Arg real(Shape shape, double low, double high) {
  return {std::move(shape), [=](Random& r, int64_t) { return r.uniform(low, high); }};
}

Arg away(Shape shape, double least) {
  return {std::move(shape), [=](Random& r, int64_t) {
            const double x = r.uniform(least, 1);
            return r.below(2) ? x : -x;
          }};
}

Arg index(Shape shape, int64_t below, uint32_t dtype) {
  Arg a{std::move(shape), [=](Random& r, int64_t) { return static_cast<double>(r.below(below)); }};
  return std::move(a).as(dtype);
}

Arg listed(Shape shape, std::vector<double> values, uint32_t dtype) {
  Arg a{std::move(shape), [values](Random&, int64_t i) { return values[static_cast<size_t>(i)]; }};
  return std::move(a).as(dtype).ordered();
}

Arg wide(Shape shape, double low, double high) { return real(std::move(shape), low, high).as(kWide); }

Arg absent() {
  Arg a;
  a.present = false;
  a.smooth = false;
  return a;
}

}  // namespace gestalt::harness
