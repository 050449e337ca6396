#include "plugins/report/diff.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "plugins/report/chart.h"

namespace gestalt::report {

namespace {

using Table = std::map<std::string, std::string>;

std::vector<Difference::Value> differing(const Table& a, const Table& b) {
  std::set<std::string> names;
  for (const auto& [name, value] : a) names.insert(name);
  for (const auto& [name, value] : b) names.insert(name);
  auto get = [](const Table& t, const std::string& name) {
    const auto it = t.find(name);
    return it == t.end() ? std::string() : it->second;
  };
  std::vector<Difference::Value> out;
  for (const std::string& name : names)
    if (get(a, name) != get(b, name)) out.push_back({name, get(a, name), get(b, name)});
  return out;
}

std::string text_named(const RunData& run, const char* name) {
  const auto it = run.texts.find(name);
  return it == run.texts.end() ? std::string() : it->second;
}

// Lines by their first word.
Table words_of(const std::string& text) {
  Table out;
  for (const std::string& line : lines_of(text)) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    const size_t end = std::min(line.find(' ', begin), line.size());
    const size_t rest = line.find_first_not_of(' ', end);
    out[line.substr(begin, end - begin)] = rest == std::string::npos ? "yes" : line.substr(rest);
  }
  return out;
}

std::string section(const char* title, const std::vector<Difference::Value>& values) {
  if (values.empty()) return std::string(title) + ": equal\n";
  std::string out = std::string(title) + ":\n";
  size_t name = 0, a = 0;
  for (const auto& v : values) {
    name = std::max(name, v.name.size());
    a = std::max(a, v.a.empty() ? size_t{1} : v.a.size());
  }
  auto padded = [](std::string s, size_t width) { return s + std::string(s.size() < width ? width - s.size() : 0, ' '); };
  for (const auto& v : values)
    out += "  " + padded(v.name, name) + "  " + padded(v.a.empty() ? "-" : v.a, a) + "  " + (v.b.empty() ? "-" : v.b) + "\n";
  return out;
}

support::Json list(const std::vector<Difference::Value>& values) {
  support::Json::Array out;
  for (const auto& v : values) out.push_back(support::Json::object({{"name", v.name}, {"a", v.a}, {"b", v.b}}));
  return out;
}

}  // namespace

Difference difference_of(const RunData& a, const RunData& b) {
  Difference d;
  Table settings_a = settings_of(text_named(a, "config")), settings_b = settings_of(text_named(b, "config"));
  d.settings = differing(settings_a, settings_b);
  d.plugins = differing(words_of(text_named(a, "plugins")), words_of(text_named(b, "plugins")));
  d.kernels = differing(words_of(text_named(a, "kernels")), words_of(text_named(b, "kernels")));
  std::map<int64_t, double> losses;
  for (const Point& p : a.of("loss")) losses[p.step] = p.value;
  for (const Point& p : b.of("loss")) {
    const auto it = losses.find(p.step);
    if (it == losses.end()) continue;
    ++d.common_steps;
    const bool equal = it->second == p.value || (std::isnan(it->second) && std::isnan(p.value));
    if (!equal && !d.first_step) d.first_step = p.step;
  }
  std::set<std::string> metrics;
  for (const RunData* run : {&a, &b})
    for (const auto& [name, points] : run->series) metrics.insert(name);
  for (const std::string& name : metrics) {
    auto last = [&](const RunData& run) {
      const Series& s = run.of(name);
      return s.empty() ? std::string() : short_number(s.back().value) + " (step " + std::to_string(s.back().step) + ")";
    };
    d.last.push_back({name, last(a), last(b)});
  }
  return d;
}

std::string text_of(const Difference& d, const RunData& a, const RunData& b) {
  std::string out = "a: " + a.folder + "\nb: " + b.folder + "\n\n";
  out += section("settings", d.settings) + section("plugins", d.plugins) + section("kernels", d.kernels);
  if (d.common_steps == 0)
    out += "losses: no step in common\n";
  else if (d.first_step)
    out += "losses: differ from step " + std::to_string(*d.first_step) + " on (" + std::to_string(d.common_steps) + " steps in common)\n";
  else
    out += "losses: equal at all " + std::to_string(d.common_steps) + " steps in common\n";
  return out + section("last values", d.last);
}

support::Json json_of(const Difference& d) {
  support::Json j = support::Json::object({{"settings", list(d.settings)},
                                           {"plugins", list(d.plugins)},
                                           {"kernels", list(d.kernels)},
                                           {"last", list(d.last)},
                                           {"common_steps", d.common_steps}});
  j.set("first_differing_step", d.first_step ? support::Json(*d.first_step) : support::Json(nullptr));
  return j;
}

}  // namespace gestalt::report
