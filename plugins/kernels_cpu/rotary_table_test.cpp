// Tables of cosines and sines against tests/golden/rope.json, which tests/peers/make_rope_golden.py writes.
#include <cmath>
#include <deque>

#include "plugins/kernels_cpu/kernel_caller.h"
#include "support/json.h"
#include "tests/catch_compat.hpp"

namespace gestalt::kernels_cpu {
namespace {

using support::Json;

// The attributes of one case; strings and lists live in `lists` and the case.
std::vector<Attr> attributes_of(const Json& object, std::deque<std::vector<double>>& lists) {
  std::vector<Attr> out;
  for (const support::JsonMember& m : object.members()) {
    if (m.value.is_string()) {
      out.emplace_back(m.key, std::string_view(m.value.str()));
    } else if (m.value.is_bool()) {
      out.emplace_back(m.key, m.value.boolean());
    } else if (m.value.is_array()) {
      std::vector<double>& list = lists.emplace_back();
      for (const Json& v : m.value.items()) list.push_back(v.f64());
      out.emplace_back(m.key, std::span<const double>(list));
    } else if (m.key == "dims" || m.key == "original_max") {
      out.emplace_back(m.key, m.value.i64());
    } else {
      out.emplace_back(m.key, m.value.f64());
    }
  }
  return out;
}

}  // namespace

TEST_CASE("tables of every rotary kind equal those of another program") {
  const Json golden = support::read_json_file(std::string(GESTALT_SOURCE_DIR) + "/tests/golden/rope.json");
  int64_t kinds = 0;
  std::string last;
  for (const Json& one : golden.at("cases").items()) {
    const Json& attributes = one.at("attributes");
    if (attributes.str("kind") != last) ++kinds;
    last = attributes.str("kind");
    const int64_t tokens = one.i64("tokens"), dims = attributes.i64("dims"), half = dims / 2;
    INFO(write_json(attributes) << ", " << tokens << " tokens");
    std::deque<std::vector<double>> lists;
    Values positions;
    for (int64_t t = 0; t < tokens; ++t) positions.push_back(static_cast<double>(t));
    Array in(kI32, {tokens}, positions), table(kF64, {tokens, dims});
    call_kernel("core.rotary_table", {&in}, {&table}, attributes_of(attributes, lists));
    const Values got = table.get();
    double worst = 0;
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(t) * one.at("frequencies").items()[static_cast<size_t>(i)].f64();
        const double factor = one.f64("attention_factor");
        const auto at = static_cast<size_t>(t * dims + i);
        worst = std::max({worst, std::abs(got[at] - factor * std::cos(angle)),
                          std::abs(got[at + static_cast<size_t>(half)] - factor * std::sin(angle))});
      }
    // The other program computes frequencies in single precision.
    CHECK(worst < 1e-5);
  }
  CHECK(kinds == 5);
}

}  // namespace gestalt::kernels_cpu
