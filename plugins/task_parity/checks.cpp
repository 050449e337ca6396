#include "plugins/task_parity/checks.h"

#include <fmt/format.h>

#include <cmath>

namespace gestalt::task_parity {

void Checks::add(std::string_view name, double value, double tolerance, const std::string& detail) {
  const bool ok = value <= tolerance;
  text_ += fmt::format("{:<12}{:<6}{:<12.3g}of {:<10.3g}{}\n", name, ok ? "ok" : "FAIL", value, tolerance, detail);
  support::Json one = support::Json::object();
  one.set("name", name);
  one.set("ok", ok);
  one.set("value", std::isfinite(value) ? support::Json(value) : support::Json(fmt::format("{}", value)));
  one.set("tolerance", tolerance);
  if (!detail.empty()) one.set("detail", detail);
  list_.push(std::move(one));
  if (!ok)
    failed_ += fmt::format("{}{} {:.3g}, expected at most {:.3g}{}{}", failed_.empty() ? "" : "; ", name, value, tolerance,
                           detail.empty() ? "" : ": ", detail);
}

Outcome Checks::outcome() const {
  support::Json json = support::Json::object();
  json.set("ok", failed_.empty());
  json.set("checks", list_);
  return {json, text_, failed_};
}

}  // namespace gestalt::task_parity
