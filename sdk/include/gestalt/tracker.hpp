// Component kind "tracker/1": a sink of metrics.
#pragma once

#include <span>
#include <string_view>

#include "gestalt/abi/tracker.h"
#include "gestalt/component.hpp"

namespace gestalt {

class Tracker : public detail::ComponentOf<Tracker> {
 public:
  // Begins or resumes a run in a folder that exists; records of steps above `step` are void (-1: a new run).
  virtual void open(std::string_view folder, std::string_view run_name, int64_t step) = 0;
  virtual void write(int64_t step, std::span<const gestalt_metric> metrics) = 0;
  // What was written survives a kill of the process.
  virtual void flush() = 0;
  // A text that belongs to the run ("config", "plugins", "kernels") or to a step ("sample").
  virtual void text(int64_t, std::string_view, std::string_view) {}

  static constexpr std::string_view kKind = "tracker/1";
  template <class>
  static constexpr const void* table();
};

namespace detail {

inline constexpr gestalt_tracker_1 tracker_table = {
    sizeof(gestalt_tracker_1),
    [](void* self, gestalt_str folder, gestalt_str run_name, int64_t step) noexcept {
      return with<Tracker>(self, [&](Tracker& t) { t.open(view_of(folder), view_of(run_name), step); });
    },
    [](void* self, int64_t step, const gestalt_metric* metrics, uint64_t num) noexcept {
      return with<Tracker>(self, [&](Tracker& t) { t.write(step, {metrics, static_cast<size_t>(num)}); });
    },
    [](void* self) noexcept { return with<Tracker>(self, [](Tracker& t) { t.flush(); }); },
    [](void* self, int64_t step, gestalt_str name, gestalt_str text) noexcept {
      return with<Tracker>(self, [&](Tracker& t) { t.text(step, view_of(name), view_of(text)); });
    }};

}  // namespace detail

template <class>
constexpr const void* Tracker::table() {
  return &detail::tracker_table;
}

}  // namespace gestalt
