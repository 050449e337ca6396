#include "plugins/tracker_tensorboard/tensorboard_tracker.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "plugins/tracker_tensorboard/event.h"

namespace gestalt::tracker_tensorboard {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSuffix = ".gestalt";

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void remove_old(const fs::path& folder) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    if (entry.path().native().ends_with(kSuffix)) fs::remove(entry.path(), ec);
}

}  // namespace

void TensorboardTracker::open(std::string_view folder, std::string_view, int64_t step) {
  const fs::path place = fs::path(folder) / "tensorboard";
  std::error_code ec;
  fs::create_directory(place, ec);
  if (ec) throw Error(GESTALT_IO_ERROR, "[" + place.native() + "] cannot make the folder: " + ec.message());
  if (step < 0) remove_old(place);
  // Readers take the files in the order of their names.
  char name[96];
  std::snprintf(name, sizeof name, "events.out.tfevents.%017.6f.%lld", now(), static_cast<long long>(getpid()));
  file_ = RecordFile((place / name).native() + std::string(kSuffix));
  file_.append(version_event(now()).text());
  if (step >= 0) file_.append(start_event(now(), step + 1).text());
}

void TensorboardTracker::write(int64_t step, std::span<const gestalt_metric> metrics) {
  if (!file_) throw InvalidArgument("[metrics] write before open, got step " + std::to_string(step));
  for (const gestalt_metric& m : metrics)
    file_.append(summary_event(now(), step, scalar(view_of(m.name), m.value)).text());
}

void TensorboardTracker::text(int64_t step, std::string_view name, std::string_view text) {
  if (!file_) throw InvalidArgument("[metrics] text before open, got step " + std::to_string(step));
  // The text tab shows markdown; code keeps the lines apart.
  const std::string shown = name == "sample" ? std::string(text) : "```\n" + std::string(text) + "\n```";
  file_.append(summary_event(now(), step, text_value(name, shown)).text());
}

GESTALT_COMPONENT(TensorboardTracker)

}  // namespace gestalt::tracker_tensorboard
