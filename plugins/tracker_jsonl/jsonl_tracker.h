#pragma once

#include <string>

#include "gestalt/tracker.hpp"

namespace gestalt::tracker_jsonl {

class JsonlTracker : public Tracker {
 public:
  static constexpr std::string_view name = "gestalt.jsonl";

  JsonlTracker(Host host, Attrs config);
  ~JsonlTracker() override;

  void open(std::string_view folder, std::string_view run_name, int64_t step) override;
  void write(int64_t step, std::span<const gestalt_metric> metrics) override;
  void flush() override;
  void text(int64_t step, std::string_view name, std::string_view text) override;

 private:
  void keep_up_to(int64_t step) const;
  void append_line();

  Host host_;
  std::string path_, line_;
  int descriptor_ = -1;
};

}  // namespace gestalt::tracker_jsonl
