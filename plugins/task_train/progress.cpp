#include "plugins/task_train/progress.h"

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "plugins/task_train/text_line.h"

namespace gestalt::train {

namespace {

struct Peak {
  std::string_view device, dtype;
  double tflops;
};
// Dense, without sparsity, as the makers state it. f32: on tensor cores in TF32.
constexpr Peak kPeaks[] = {{"H200", "bf16", 989.4}, {"H200", "f16", 989.4}, {"H200", "f32", 494.7}, {"H100", "bf16", 989.4},
                           {"H100", "f16", 989.4},  {"H100", "f32", 494.7}, {"A100", "bf16", 312},  {"A100", "f16", 312},
                           {"A100", "f32", 156}};

long long wide(int64_t n) { return static_cast<long long>(n); }

// "[2026-11-30 12:00:00.123456]"
std::string time_stamp() {
  timeval now{};
  gettimeofday(&now, nullptr);
  tm local{};
  localtime_r(&now.tv_sec, &local);
  char day[32];
  std::strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &local);
  return text("[%s.%06ld]", day, static_cast<long>(now.tv_usec));
}

}  // namespace

std::string duration_text(double seconds) {
  const auto s = static_cast<int64_t>(std::lround(std::max(seconds, 0.0)));
  if (s >= 3600) return text("%lld:%02lld:%02lld", wide(s / 3600), wide(s / 60 % 60), wide(s % 60));
  return text("%lld:%02lld", wide(s / 60), wide(s % 60));
}

std::string bytes_text(double bytes) {
  if (bytes >= 1e9) return text("%.2f GB", bytes / 1e9);
  return text("%.0f MB", bytes / 1e6);
}

double known_peak_tflops(std::string_view device, std::string_view dtype) {
  for (const Peak& p : kPeaks)
    if (device.find(p.device) != std::string_view::npos && p.dtype == dtype) return p.tflops;
  return 0;
}

Progress::Progress(Session& session, bool megatron)
    : session_(session),
      megatron_(megatron),
      live_(isatty(STDOUT_FILENO) == 1),
      global_batch_(session.i64("train.global_batch")),
      peak_(session.f64("train.peak_tflops", 0)) {
  const gestalt_run_info info = session.info();
  if (peak_ == 0) peak_ = known_peak_tflops(view_of(info.device), view_of(info.dtype));
}

void Progress::rates(const Interval& over) {
  if (over.seconds <= 0) return;
  tokens_per_second_ = static_cast<double>(over.tokens) / over.seconds;
  step_seconds_ = over.seconds / static_cast<double>(over.updates);
  tflops_ = session_.info().step_flops / step_seconds_ / 1e12;
}

void Progress::update(const gestalt_step_result& r, bool line) {
  Interval& s = since_line_;
  ++s.updates;
  s.tokens += r.num_tokens;
  s.seconds += r.step_seconds;
  s.data_seconds += r.data_seconds;
  if (r.skipped) {
    ++s.skipped;
    ++num_skipped_;
    if (!std::isfinite(r.loss)) ++num_not_finite_;
  } else {
    s.loss += r.loss;
  }
  const bool live = live_ && Clock::now() - last_live_ > std::chrono::milliseconds(200);
  if (!line && !live) return;
  rates(s);
  if (live) {
    session_.print("\r\033[K" + short_line(r, s));
    live_shown_ = true;
    last_live_ = Clock::now();
  }
  if (!line) return;
  print(megatron_ ? megatron_line(r, s) : short_line(r, s));
  s = {};
}

std::string Progress::short_line(const gestalt_step_result& r, const Interval& over) const {
  std::string line = text("step %6lld", wide(r.step));
  if (steps_) line += text("/%lld", wide(*steps_));
  line += text("  loss %.4f  lr %.3e  grad_norm %.3f  %.0f tokens/s", r.loss, r.lr, r.grad_norm, tokens_per_second_);
  if (tflops_ > 0) line += text(tflops_ < 10 ? "  %.3f TFLOP/s" : "  %.1f TFLOP/s", tflops_);
  if (peak_ > 0) line += text("  MFU %.1f%%", 100 * mfu());
  line += "  memory " + bytes_text(static_cast<double>(session_.info().memory_peak_bytes));
  if (over.seconds > 0) line += text("  data %.1f%%", 100 * over.data_seconds / over.seconds);
  if (steps_) line += "  ETA " + duration_text(static_cast<double>(*steps_ - r.step) * step_seconds_);
  if (num_skipped_ > 0) line += text("  skipped %lld", wide(num_skipped_));
  if (r.skipped) line += "  SKIPPED: not finite";
  return line;
}

std::string Progress::megatron_line(const gestalt_step_result& r, const Interval& over) const {
  const auto advanced = static_cast<double>(std::max<int64_t>(over.updates - over.skipped, 1));
  std::string line = " " + time_stamp();
  line += text(" iteration %8lld/%8lld |", wide(r.step), wide(steps_.value_or(0)));
  line += text(" consumed samples: %12lld |", wide(r.step * global_batch_));
  line += text(" elapsed time per iteration (ms): %.1f |", 1e3 * step_seconds_);
  line += text(" throughput per GPU (TFLOP/s/GPU): %.1f |", tflops_);
  line += text(" learning rate: %.6E | global batch size: %5lld |", r.lr, wide(global_batch_));
  if (over.updates > over.skipped) line += text(" lm loss: %.6E |", over.loss / advanced);
  line += text(" loss scale: %.1f | grad norm: %.3f |", 1.0, r.grad_norm);
  line += text(" number of skipped iterations: %3lld | number of nan iterations: %3lld |", wide(num_skipped_),
               wide(num_not_finite_));
  return line;
}

void Progress::print(const std::string& line) {
  finish();
  session_.print(line + "\n");
}

void Progress::validation(int64_t step, double loss, double perplexity, double bits_per_byte) {
  if (megatron_) {
    const std::string line = text(" validation loss at iteration %lld | lm loss value: %.6E | lm loss PPL: %.6E | ",
                                  wide(step), loss, perplexity);
    const std::string frame(line.size(), '-');
    return print(frame + "\n" + line + "\n" + frame);
  }
  print(text("validation at step %lld: loss %.4f  perplexity %.3f", wide(step), loss, perplexity) +
        (bits_per_byte >= 0 ? text("  bits_per_byte %.4f", bits_per_byte) : std::string()));
}

void Progress::finish() {
  if (live_shown_) session_.print("\r\033[K");
  live_shown_ = false;
}

}  // namespace gestalt::train
