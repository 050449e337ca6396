// What a run told its tracker gestalt.jsonl.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gestalt::report {

struct Point {
  int64_t step;
  double value;
};
using Series = std::vector<Point>;

struct Sample {
  int64_t step;
  std::string text;
};

struct RunData {
  std::string folder, name;
  std::map<std::string, Series> series;      // by metric
  std::map<std::string, std::string> texts;  // "config", "plugins", "kernels": the newest of each
  std::vector<Sample> samples;

  const Series& of(const std::string& metric) const;  // empty when there is none
  // The value of a key in the text "config", as written there; empty when it is not set.
  std::string setting(const std::string& key) const;
};

// A folder of a run or its metrics.jsonl. Throws NOT_FOUND or DATA_ERROR with file and line. A torn last line is left out.
RunData read_run(const std::string& path);

// "key = value" lines by key.
std::map<std::string, std::string> settings_of(const std::string& config);
std::vector<std::string> lines_of(const std::string& text);

}  // namespace gestalt::report
