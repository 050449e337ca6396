#include "plugins/format_hf/config_reader.h"

#include <fmt/format.h>

#include "gestalt/error.hpp"

namespace gestalt::format_hf {

using support::Json;

const Json* ConfigReader::find(std::string_view key) const {
  mention(key);
  const Json* value = object_.find(key);
  return value && !value->is_null() ? value : nullptr;
}

int64_t ConfigReader::i64(std::string_view key, int64_t absent) const { return has(key) ? object_.i64(key) : absent; }
double ConfigReader::f64(std::string_view key, double absent) const { return has(key) ? object_.f64(key) : absent; }
bool ConfigReader::boolean(std::string_view key, bool absent) const { return has(key) ? object_.boolean(key) : absent; }
std::string ConfigReader::str(std::string_view key, std::string_view absent) const {
  return has(key) ? object_.str(key) : std::string(absent);
}

std::vector<double> ConfigReader::f64_list(std::string_view key) const {
  std::vector<double> out;
  if (const Json* list = find(key))
    for (const Json& v : list->items()) out.push_back(v.f64());
  return out;
}

bool ConfigReader::has_null(std::string_view key) const {
  mention(key);
  const Json* value = object_.find(key);
  return value && value->is_null();
}

const ConfigReader* ConfigReader::section(std::string_view key) const {
  const Json* value = find(key);
  if (!value) return nullptr;
  if (!value->is_object())
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}{}] is {}, expected an object", prefix_, key, value->kind()));
  std::unique_ptr<ConfigReader>& reader = sections_[std::string(key)];
  if (!reader) reader = std::make_unique<ConfigReader>(*value, fmt::format("{}{}.", prefix_, key));
  return reader.get();
}

void ConfigReader::expect(std::string_view key, bool value) const {
  if (boolean(key, value) != value)
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}{}] got {}, expected {}", prefix_, key, !value, value));
}

std::vector<std::string> ConfigReader::unasked() const {
  std::vector<std::string> out;
  for (const support::JsonMember& m : object_.members()) {
    if (m.value.is_null() || used_.find(m.key) != used_.end()) continue;
    std::string value = support::write_json(m.value);
    if (value.size() > 60) value = value.substr(0, 57) + "...";
    out.push_back(fmt::format("{}{} is {}", prefix_, m.key, value));
  }
  for (const auto& [key, reader] : sections_)
    for (std::string& line : reader->unasked()) out.push_back(std::move(line));
  return out;
}

}  // namespace gestalt::format_hf
