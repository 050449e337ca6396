// What a training says while it runs: one line every log_every updates, short or in Megatron-LM's form, and on a
// terminal a live line below them.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "gestalt/plugin.hpp"

namespace gestalt::train {

using Clock = std::chrono::steady_clock;

// Seconds as "1:02:03" or "2:03".
std::string duration_text(double seconds);
// Bytes as "1.2 GB".
std::string bytes_text(double bytes);
// Dense TFLOP/s that a device can do in a type, by its name; 0: not known.
double known_peak_tflops(std::string_view device, std::string_view dtype);

// Sums over the updates since the last line.
struct Interval {
  int64_t updates = 0, skipped = 0, tokens = 0;
  double loss = 0, seconds = 0, data_seconds = 0;
};

class Progress {
 public:
  Progress(Session& session, bool megatron);

  void set_length(std::optional<int64_t> steps) { steps_ = steps; }
  // After every update; `line`: a whole line is due.
  void update(const gestalt_step_result& r, bool line);
  // A line of its own: saved, evaluated.
  void print(const std::string& line);
  void validation(int64_t step, double loss, double perplexity, double bits_per_byte);
  // Takes the live line away.
  void finish();

  int64_t num_skipped() const { return num_skipped_; }
  double tokens_per_second() const { return tokens_per_second_; }
  double tflops() const { return tflops_; }
  double mfu() const { return peak_ > 0 ? tflops_ / peak_ : 0; }

 private:
  std::string short_line(const gestalt_step_result& r, const Interval& over) const;
  std::string megatron_line(const gestalt_step_result& r, const Interval& over) const;
  void rates(const Interval& over);

  Session& session_;
  bool megatron_, live_;
  bool live_shown_ = false;
  std::optional<int64_t> steps_;
  int64_t global_batch_, num_skipped_ = 0, num_not_finite_ = 0;
  double peak_, tokens_per_second_ = 0, tflops_ = 0, step_seconds_ = 0;
  Interval since_line_;
  Clock::time_point last_live_;
};

}  // namespace gestalt::train
