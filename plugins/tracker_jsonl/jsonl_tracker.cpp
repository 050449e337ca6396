#include "plugins/tracker_jsonl/jsonl_tracker.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "support/file.h"
#include "support/json.h"

namespace gestalt::tracker_jsonl {

namespace {

[[noreturn]] void io_failed(const std::string& path, std::string_view doing) {
  throw Error(GESTALT_IO_ERROR, "[" + path + "] " + std::string(doing) + " failed: " + std::strerror(errno));
}

// JSON has no NaN and no infinity; as strings they stay visible instead of breaking the reader of the file.
void append_value(std::string* line, double value) {
  if (std::isnan(value)) {
    line->append("\"NaN\"");
  } else if (std::isinf(value)) {
    line->append(value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
  } else if (value == std::trunc(value) && std::abs(value) < 9007199254740992.0) {
    support::append_json_number(line, static_cast<int64_t>(value));
  } else {
    support::append_json_number(line, value);
  }
}

// The step of a whole line, or -1 when it is not one of ours.
int64_t step_of(std::string_view line) {
  try {
    return support::parse_json(line, "line", {uint64_t{1} << 20, 8}).i64("step");
  } catch (const Error&) {
    return -1;
  }
}

}  // namespace

JsonlTracker::JsonlTracker(Host host, Attrs) : host_(host) {}

JsonlTracker::~JsonlTracker() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void JsonlTracker::keep_up_to(int64_t step) const {
  if (::access(path_.c_str(), F_OK) != 0) return;
  const std::string old = support::ReadFile(path_).read_all();
  std::string kept;
  int64_t num_later = 0, num_damaged = 0;
  for (size_t pos = 0; pos < old.size();) {
    const size_t newline = old.find('\n', pos);
    const size_t end = newline == std::string::npos ? old.size() : newline + 1;
    const std::string_view line = std::string_view(old).substr(pos, end - pos);
    const int64_t line_step = newline == std::string::npos ? -1 : step_of(line);
    if (line_step < 0) {
      ++num_damaged;
    } else if (line_step > step) {
      ++num_later;
    } else {
      kept.append(line);
    }
    pos = end;
  }
  if (kept.size() == old.size()) return;
  if (step >= 0) {
    host_.info("[metrics] " + path_ + ": dropped " + std::to_string(num_later) + " lines after step " +
               std::to_string(step) + " and " + std::to_string(num_damaged) + " that were torn");
  }
  support::AtomicFile file(path_);
  file.write(kept);
  file.commit();
}

void JsonlTracker::open(std::string_view folder, std::string_view, int64_t step) {
  path_ = std::string(folder) + "/metrics.jsonl";
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  keep_up_to(step);
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) io_failed(path_, "open for appending");
  support::sync_folder_of(path_);
}

void JsonlTracker::write(int64_t step, std::span<const gestalt_metric> metrics) {
  if (descriptor_ < 0) throw InvalidArgument("[metrics] write before open, got step " + std::to_string(step));
  line_.assign("{\"step\":");
  support::append_json_number(&line_, step);
  for (size_t i = 0; i < metrics.size(); ++i) {
    const std::string_view name = view_of(metrics[i].name);
    bool taken = name == "step";
    for (size_t j = 0; j < i; ++j) taken = taken || name == view_of(metrics[j].name);
    if (taken) throw InvalidArgument("[metrics] name twice in one record, got \"" + std::string(name) + "\"");
    line_.push_back(',');
    support::append_json_string(&line_, name);
    line_.push_back(':');
    append_value(&line_, metrics[i].value);
  }
  append_line();
}

void JsonlTracker::text(int64_t step, std::string_view name, std::string_view text) {
  if (descriptor_ < 0) throw InvalidArgument("[metrics] text before open, got step " + std::to_string(step));
  line_.assign("{\"step\":");
  support::append_json_number(&line_, step);
  line_.append(",\"text\":");
  support::append_json_string(&line_, name);
  line_.append(",\"content\":");
  support::append_json_string(&line_, text);
  append_line();
}

// One call for the line: what the kernel has taken survives a kill of the process.
void JsonlTracker::append_line() {
  line_.append("}\n");
  for (std::string_view left = line_; !left.empty();) {
    const ssize_t done = ::write(descriptor_, left.data(), left.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) io_failed(path_, "write of a line");
    left.remove_prefix(static_cast<size_t>(done));
  }
}

void JsonlTracker::flush() {
  if (descriptor_ >= 0 && ::fdatasync(descriptor_) != 0) io_failed(path_, "fdatasync");
}

GESTALT_COMPONENT(JsonlTracker)

}  // namespace gestalt::tracker_jsonl
