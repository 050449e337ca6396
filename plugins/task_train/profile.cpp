#include "plugins/task_train/profile.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "plugins/task_train/text_line.h"
#include "support/json.h"

namespace gestalt::train {

namespace {

struct Row {
  std::string name;
  int64_t calls = 0, nanoseconds = 0;
  double flops = 0, bytes = 0;
};

template <class Events, class NameOf>
std::vector<Row> rows_by(const Events& events, NameOf name_of) {
  std::map<std::string, Row> rows;
  for (const auto& e : events) {
    Row& r = rows[name_of(e)];
    r.name = name_of(e);
    ++r.calls;
    r.nanoseconds += e.duration_ns;
    r.flops += e.flops;
    r.bytes += e.bytes;
  }
  std::vector<Row> sorted;
  for (auto& [name, row] : rows) sorted.push_back(row);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) { return a.nanoseconds > b.nanoseconds; });
  return sorted;
}

std::string table_of(const char* title, const std::vector<Row>& rows) {
  int64_t total = 0;
  for (const Row& r : rows) total += r.nanoseconds;
  std::string out = text("%-34s %8s %12s %7s %10s %9s\n", title, "calls", "ms", "share", "GFLOP/s", "GB/s");
  for (const Row& r : rows) {
    const double s = std::max(static_cast<double>(r.nanoseconds) * 1e-9, 1e-12);
    out += text("%-34s %8lld %12.3f %6.1f%%", r.name.c_str(), static_cast<long long>(r.calls), s * 1e3,
                100 * static_cast<double>(r.nanoseconds) / static_cast<double>(std::max<int64_t>(total, 1)));
    out += r.flops > 0 ? text(" %10.2f", r.flops / s * 1e-9) : std::string(11, ' ');
    out += text(" %9.2f\n", r.bytes / s * 1e-9);
  }
  return out;
}

}  // namespace

Profile::Profile(std::string_view range) {
  const size_t colon = range.find(':');
  auto number = [](std::string_view part, int64_t* to) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), *to);
    return error == std::errc{} && end == part.data() + part.size();
  };
  if (colon == std::string_view::npos || !number(range.substr(0, colon), &first_) ||
      !number(range.substr(colon + 1), &last_) || first_ < 1 || last_ < first_)
    throw Error(GESTALT_USAGE_ERROR, "[--profile] got '" + std::string(range) +
                                         "', expected A:B with 1 <= A <= B: the first and the last update");
}

void Profile::add(const gestalt_profile_event& e) {
  auto str = [](gestalt_str s) { return std::string(view_of(s)); };
  events_.push_back({str(e.op), str(e.group), str(e.path), str(e.region), str(e.backend), e.begin_ns, e.duration_ns,
                     e.flops, e.bytes});
}

std::string Profile::trace() const {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  const int64_t origin = events_.empty() ? 0 : events_.front().begin_ns;
  for (size_t i = 0; i < events_.size(); ++i) {
    const Event& e = events_[i];
    out += "{\"name\":";
    support::append_json_string(&out, e.op);
    out += ",\"cat\":";
    support::append_json_string(&out, e.group);
    out += text(",\"ph\":\"X\",\"pid\":0,\"tid\":0,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"path\":",
                static_cast<double>(e.begin_ns - origin) * 1e-3, static_cast<double>(e.duration_ns) * 1e-3);
    support::append_json_string(&out, e.path);
    out += ",\"region\":";
    support::append_json_string(&out, e.region);
    out += ",\"backend\":";
    support::append_json_string(&out, e.backend);
    out += text(",\"flops\":%.0f,\"bytes\":%.0f}}%s\n", e.flops, e.bytes, i + 1 < events_.size() ? "," : "");
  }
  return out + "]}\n";
}

std::string Profile::table() const {
  return table_of("class", rows_by(events_, [](const Event& e) { return e.region + " " + e.group; })) + "\n" +
         table_of("op", rows_by(events_, [](const Event& e) { return e.op; }));
}

std::string Profile::file_name() const {
  return text("profile-%lld-%lld.json", static_cast<long long>(first_), static_cast<long long>(last_));
}

}  // namespace gestalt::train
