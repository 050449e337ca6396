#pragma once

#include <string>

#include "gestalt/tracker.hpp"
#include "plugins/tracker_tensorboard/record_file.h"

namespace gestalt::tracker_tensorboard {

class TensorboardTracker : public Tracker {
 public:
  static constexpr std::string_view name = "gestalt.tensorboard";

  TensorboardTracker(Host, Attrs) {}

  void open(std::string_view folder, std::string_view run_name, int64_t step) override;
  void write(int64_t step, std::span<const gestalt_metric> metrics) override;
  void flush() override { file_.sync(); }
  void text(int64_t step, std::string_view name, std::string_view text) override;

 private:
  RecordFile file_;
};

}  // namespace gestalt::tracker_tensorboard
