// The tracker `gestalt.report`: keeps report.html up to date from what gestalt.jsonl has written.
#include <chrono>
#include <filesystem>
#include <string>

#include "gestalt/plugin.hpp"
#include "plugins/report/page.h"

namespace gestalt::report {

class ReportTracker : public Tracker {
 public:
  static constexpr std::string_view name = "gestalt.report";
  ReportTracker(Host host, Attrs) : host_(host) {}
  ~ReportTracker() override {
    if (folder_.empty()) return;
    try {
      write_page(read_run(folder_));
    } catch (const std::exception& e) {
      host_.error(std::string("[metrics] report.html was not written: ") + e.what());
    }
  }

  void open(std::string_view folder, std::string_view, int64_t) override {
    if (!std::filesystem::exists(std::filesystem::path(folder) / "metrics.jsonl"))
      throw Error(GESTALT_CONFIG_ERROR,
                  "[metrics.trackers] gestalt.report reads what gestalt.jsonl writes; list gestalt.jsonl before it");
    folder_ = folder;
    written_ = Clock::now();
  }
  void write(int64_t, std::span<const gestalt_metric>) override {}
  void flush() override {
    if (Clock::now() - written_ < std::chrono::minutes(1)) return;
    write_page(read_run(folder_));
    written_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;

  Host host_;
  std::string folder_;
  Clock::time_point written_;
};
GESTALT_COMPONENT(ReportTracker)

}  // namespace gestalt::report
