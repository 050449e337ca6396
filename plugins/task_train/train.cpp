// The verb `train`: updates until the run's length is reached, with evaluations, log lines, metrics and checkpoints.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "gestalt/plugin.hpp"

namespace gestalt::train {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

template <class... A>
std::string text(const char* format, A... args) {
  char line[512];
  std::snprintf(line, sizeof line, format, args...);
  return line;
}

// Bits per byte of a split: nats a token times tokens over bytes; below 0 when the bytes are unknown.
double bits_per_byte(const gestalt_step_result& r, int64_t bytes) {
  return bytes > 0 ? r.loss * r.weight / std::log(2.0) / static_cast<double>(bytes) : -1;
}

class Train : public Task {
 public:
  static constexpr std::string_view name = "train";
  static constexpr std::string_view usage =
      "gestalt train CONFIG [--set KEY=VALUE]... [--resume auto|none|DIR] [--allow-older] [--device NAME] [--debug eager]";
  Train(Host host, Attrs) : host_(host) {}

  void run(Session& s) override {
    if (!s.arguments().empty())
      throw Error(GESTALT_USAGE_ERROR, "[train] unknown argument '" + std::string(view_of(s.arguments()[0])) + "'");
    const bool has_steps = s.has("train.steps"), has_minutes = s.has("train.minutes"), has_tokens = s.has("train.tokens");
    if (has_steps + has_minutes + has_tokens == 0)
      throw Error(GESTALT_CONFIG_ERROR, "[train] has no length; set train.steps, train.tokens or train.minutes");
    // A run whose length was measured carries both: the number of updates then counts.
    if (has_tokens && has_minutes)
      throw Error(GESTALT_CONFIG_ERROR, "[train] has two lengths; leave tokens or minutes out");
    if (has_minutes) limit_seconds_ = s.f64("train.minutes") * 60;
    if (has_steps) steps_ = s.i64("train.steps");
    const int64_t log_every = s.i64("train.log_every"), eval_every = s.i64("train.eval_every"),
                  save_every = s.has("checkpoint.type") ? s.i64("checkpoint.every") : 0;

    s.open_model();
    s.open_data();
    s.open_optimizer();
    host_.info(text("%lld parameters, output '%s'", static_cast<long long>(s.num_parameters()),
                                     std::string(s.output_folder()).c_str()));
    if (has_tokens && !has_steps) {
      const int64_t each = s.i64("train.global_batch") * s.i64("model.seq_len");
      fix(s, (s.i64("train.tokens") + each - 1) / each);
    }
    begin_ = Clock::now();
    int64_t done = s.steps_done();
    bool saved = true;
    if (steps_ && done >= *steps_)
      host_.info(text("nothing to do: %lld of %lld updates are done", static_cast<long long>(done), static_cast<long long>(*steps_)));
    for (;;) {
      if (steps_ && done >= *steps_) break;
      if (has_minutes && has_steps && done > 0 && seconds_since(begin_) >= limit_seconds_) break;
      const int32_t stop = s.stop_requested();
      if (stop == 1) return stopped(s, done);
      if (stop == 2 && done > 0) s.save();
      const gestalt_step_result r = s.train_step();
      done = r.step;
      saved = false;
      if (!std::isfinite(r.loss) && r.skipped) ++not_finite_;
      if (not_finite_ > kMaxNotFinite)
        throw Error(GESTALT_VALIDATION, text("[train] %d updates in a row were skipped because loss or gradient was not "
                                             "finite, the last at step %lld; run with --debug eager to find the tensor",
                                             not_finite_, static_cast<long long>(done)));
      if (!r.skipped) not_finite_ = 0;
      measure(s, r);
      if (done == 1 || done % log_every == 0 || (steps_ && done == *steps_)) log(s, r);
      if (eval_every > 0 && done % eval_every == 0 && !(steps_ && done == *steps_)) evaluate(s, done);
      if (save_every > 0 && done % save_every == 0) {
        s.save();
        saved = true;
      }
    }
    evaluate(s, done);
    if (s.has("checkpoint.type") && !saved) s.save();
    s.wait_saved();
  }

 private:
  static constexpr int kMaxNotFinite = 5;
  static constexpr int64_t kMeasureFrom = 5, kMeasureTo = 25;

  // Turns minutes into a number of updates once the speed is known, so that schedules know where they end.
  void measure(Session& s, const gestalt_step_result& r) {
    if (steps_) return;
    ++measured_;
    if (measured_ == kMeasureFrom) measure_begin_ = Clock::now();
    if (measured_ < kMeasureTo && seconds_since(begin_) < limit_seconds_ / 4) return;
    if (measured_ <= kMeasureFrom) {
      if (seconds_since(begin_) >= limit_seconds_) fix(s, r.step);
      return;
    }
    const double each = seconds_since(measure_begin_) / static_cast<double>(measured_ - kMeasureFrom);
    const double left = limit_seconds_ - seconds_since(begin_);
    fix(s, r.step + static_cast<int64_t>(std::max(left / each, 0.0)));
  }
  void fix(Session& s, int64_t steps) {
    s.set_steps(steps);
    steps_ = steps;
    host_.info(text("the run has %lld updates", static_cast<long long>(steps)));
  }

  void log(Session& s, const gestalt_step_result& r) {
    const double rate = static_cast<double>(r.num_tokens) / r.step_seconds;
    s.print(text("step %6lld%s  loss %.4f  lr %.3e  grad_norm %.3f  %.0f tokens/s%s\n", static_cast<long long>(r.step),
                 steps_ ? text("/%lld", static_cast<long long>(*steps_)).c_str() : "", r.loss, r.lr, r.grad_norm, rate,
                 r.skipped ? "  SKIPPED: not finite" : ""));
    const gestalt_metric m[] = {{str_of("loss"), r.loss},
                                {str_of("lr"), r.lr},
                                {str_of("grad_norm_preclip"), r.grad_norm},
                                {str_of("tokens_per_second"), rate},
                                {str_of("step_seconds"), r.step_seconds},
                                {str_of("data_seconds"), r.data_seconds}};
    s.metrics(r.step, m);
  }

  void evaluate(Session& s, int64_t step) {
    const int64_t samples = s.num_samples("valid");
    if (samples == 0) return;
    int64_t num = s.i64("train.eval_samples");
    if (num > samples && samples > 0) num = samples;
    const bool whole = num < 0 || num == samples;
    const gestalt_step_result r = s.evaluate("valid", 0, num);
    const double bpb = whole ? bits_per_byte(r, s.bytes_of_text("valid")) : -1;
    s.print(text("validation at step %lld: loss %.4f  perplexity %.3f", static_cast<long long>(step), r.loss,
                 std::exp(std::min(r.loss, 20.0))) +
            (bpb >= 0 ? text("  bits_per_byte %.4f\n", bpb) : std::string("\n")));
    std::vector<gestalt_metric> m = {{str_of("valid_loss"), r.loss}};
    if (bpb >= 0) m.push_back({str_of("valid_bits_per_byte"), bpb});
    s.metrics(step, m);
  }

  void stopped(Session& s, int64_t done) {
    if (done > 0 && s.has("checkpoint.type")) {
      s.save();
      s.wait_saved();
      throw Error(GESTALT_INTERRUPTED, text("stopped after step %lld; continue with --resume auto", static_cast<long long>(done)));
    }
    throw Error(GESTALT_INTERRUPTED, "stopped before the first update; nothing to save");
  }

  Host host_;
  double limit_seconds_ = 0;
  std::optional<int64_t> steps_;
  Clock::time_point begin_, measure_begin_;
  int64_t measured_ = 0;
  int not_finite_ = 0;
};
GESTALT_COMPONENT(Train)

}  // namespace gestalt::train
