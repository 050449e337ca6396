#include "plugins/report/run_data.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "gestalt/error.hpp"
#include "support/file.h"
#include "support/json.h"

namespace gestalt::report {

namespace fs = std::filesystem;

namespace {

double number_of(const support::Json& v) {
  if (v.is_number()) return v.f64();
  const std::string& s = v.str();  // "NaN", "Infinity", "-Infinity"
  if (s == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return s == "-Infinity" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

void take_line(RunData& run, const support::Json& line) {
  const int64_t step = line.i64("step");
  if (line.has("text")) {
    if (line.str("text") == "sample")
      run.samples.push_back({step, line.str("content")});
    else
      run.texts[line.str("text")] = line.str("content");
    return;
  }
  for (const support::JsonMember& m : line.members())
    if (m.key != "step") run.series[m.key].push_back({step, number_of(m.value)});
}

}  // namespace

const Series& RunData::of(const std::string& metric) const {
  static const auto* kNone = new Series;
  const auto it = series.find(metric);
  return it == series.end() ? *kNone : it->second;
}

std::string RunData::setting(const std::string& key) const {
  const auto config = texts.find("config");
  if (config == texts.end()) return {};
  const auto settings = settings_of(config->second);
  const auto it = settings.find(key);
  return it == settings.end() ? std::string() : it->second;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::map<std::string, std::string> settings_of(const std::string& config) {
  std::map<std::string, std::string> out;
  for (const std::string& line : lines_of(config))
    if (const size_t equals = line.find(" = "); equals != std::string::npos)
      out[line.substr(0, equals)] = line.substr(equals + 3);
  return out;
}

RunData read_run(const std::string& path) {
  std::error_code ec;
  const fs::path given(path), file = fs::is_directory(given, ec) ? given / "metrics.jsonl" : given;
  if (!fs::exists(file, ec))
    throw Error(GESTALT_NOT_FOUND, "[" + path + "] there is no metrics.jsonl, expected the folder of a run with the "
                "tracker gestalt.jsonl");
  RunData run;
  run.folder = fs::absolute(file, ec).parent_path().lexically_normal().native();
  const std::string text = support::ReadFile(file.native()).read_all();
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    ++number;
    const std::string where = file.native() + ":" + std::to_string(number);
    take_line(run, support::parse_json(std::string_view(text).substr(at, end - at), where));
    at = end + 1;
  }
  run.name = run.setting("run.name");
  if (run.name.size() >= 2) run.name = run.name.substr(1, run.name.size() - 2);  // quoted
  if (run.name.empty()) run.name = fs::path(run.folder).filename().native();
  return run;
}

}  // namespace gestalt::report
