// The verb `train`: updates until the run's length is reached, with evaluations, log lines, metrics and checkpoints.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "gestalt/plugin.hpp"
#include "plugins/task_train/profile.h"
#include "plugins/task_train/progress.h"
#include "plugins/task_train/text_line.h"
#include "support/file.h"
#include "support/generation/continuation.h"
#include "support/generation/text_stream.h"

namespace gestalt::train {

namespace {

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Bits per byte of a split: nats a token times tokens over bytes; below 0 when the bytes are unknown.
double bits_per_byte(const gestalt_step_result& r, int64_t bytes) {
  return bytes > 0 ? r.loss * r.weight / std::log(2.0) / static_cast<double>(bytes) : -1;
}

// How long a run is, as the run file says it.
struct Length {
  bool steps, minutes, tokens;
};
Length length_of(const Session& s) {
  const Length has{s.has("train.steps"), s.has("train.minutes"), s.has("train.tokens")};
  if (!has.steps && !has.minutes && !has.tokens)
    throw Error(GESTALT_CONFIG_ERROR, "[train] has no length; set train.steps, train.tokens or train.minutes");
  // A run whose length was measured carries both: the number of updates then counts.
  if (has.tokens && has.minutes)
    throw Error(GESTALT_CONFIG_ERROR, "[train] has two lengths; leave tokens or minutes out");
  return has;
}

}  // namespace

class Train : public Task {
 public:
  static constexpr std::string_view name = "train";
  static constexpr std::string_view usage =
      "gestalt train CONFIG [--set KEY=VALUE]... [--resume auto|none|DIR] [--allow-older] [--device NAME] [--debug eager] "
      "[--profile A:B]";
  Train(Host host, Attrs) : host_(host) {}

  void run(Session& s) override {
    parse(s.arguments());
    const Length has = length_of(s);
    if (has.minutes) limit_seconds_ = s.f64("train.minutes") * 60;
    if (has.steps) steps_ = s.i64("train.steps");
    log_every_ = s.i64("train.log_every");
    max_skipped_ = s.i64("train.max_skipped");
    const int64_t eval_every = s.i64("train.eval_every"),
                  save_every = s.has("checkpoint.type") ? s.i64("checkpoint.every") : 0;

    s.open_model();
    s.open_data();
    s.open_optimizer();
    host_.info(text("%lld parameters, output '%s'", static_cast<long long>(s.num_parameters()),
                    std::string(s.output_folder()).c_str()));
    if (has.tokens && !has.steps) {
      const int64_t each = s.i64("train.global_batch") * s.i64("model.seq_len");
      fix(s, (s.i64("train.tokens") + each - 1) / each);
    }
    progress_.emplace(s, s.str("train.log_format") == "megatron");
    progress_->set_length(steps_);
    begin_ = Clock::now();
    int64_t done = s.steps_done();
    bool saved = true, save_asked = false;
    if (steps_ && done >= *steps_)
      host_.info(text("nothing to do: %lld of %lld updates are done", static_cast<long long>(done),
                      static_cast<long long>(*steps_)));
    for (;;) {
      const bool last = (steps_ && done >= *steps_) ||
                        (has.minutes && has.steps && done > 0 && seconds_since(begin_) >= limit_seconds_);
      const int32_t stop = s.stop_requested();
      if (stop == 1 && !last) return stopped(s, done, saved);
      save_asked = save_asked || stop == 2;
      if (save_asked && done > 0) {
        save(s);
        saved = true;
        save_asked = false;
      }
      if (last) break;
      const gestalt_step_result r = step(s, done + 1);
      done = r.step;
      saved = false;
      measure(s, r);
      const bool is_last = steps_ && done == *steps_, line = done == 1 || done % log_every_ == 0 || is_last;
      progress_->update(r, line);
      if (line) metrics(s, r);
      watch(s, r);
      if (eval_every > 0 && done % eval_every == 0 && !is_last) evaluate(s, done);
      if (save_every > 0 && done % save_every == 0) {
        save(s);
        saved = true;
      }
    }
    // First what must not be lost, then what can be done again.
    if (s.has("checkpoint.type") && !saved) save(s);
    evaluate(s, done);
    progress_->finish();
    s.wait_saved();
  }

 private:
  static constexpr int64_t kMeasureFrom = 5, kMeasureTo = 25;

  void parse(std::span<const gestalt_str> arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string_view flag = view_of(arguments[i]);
      if (flag == "--profile" && i + 1 < arguments.size())
        profile_.emplace(view_of(arguments[++i]));
      else if (flag.starts_with("--profile="))
        profile_.emplace(flag.substr(10));
      else
        throw Error(GESTALT_USAGE_ERROR, "[train] unknown argument or missing value: '" + std::string(flag) + "'");
    }
  }

  gestalt_step_result step(Session& s, int64_t next) {
    if (!profile_ || !profile_->covers(next)) return s.train_step();
    const gestalt_step_result r = s.profiled_step([&](const gestalt_profile_event& e) { profile_->add(e); });
    if (profile_->ends_with(next)) {
      const std::string path = std::string(s.output_folder()) + "/" + profile_->file_name();
      support::AtomicFile file(path);
      file.write(profile_->trace());
      file.commit();
      progress_->print(profile_->table() + "trace " + path);
    }
    return r;
  }

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
    if (progress_) progress_->set_length(steps);
    host_.info(text("the run has %lld updates", static_cast<long long>(steps)));
  }

  // A run whose updates are skipped one after the other ends with the place where the numbers broke.
  void watch(Session& s, const gestalt_step_result& r) {
    skipped_ = r.skipped ? skipped_ + 1 : 0;
    if (skipped_ < max_skipped_) return;
    progress_->finish();
    const std::string what =
        text("[train] loss or gradient was not finite in %lld updates in a row, the last at step %lld; they were skipped",
             static_cast<long long>(skipped_), static_cast<long long>(r.step));
    try {
      s.find_not_finite();
    } catch (const Error& e) {
      throw Error(GESTALT_VALIDATION, what + ". First: " + e.what());
    }
    throw Error(GESTALT_VALIDATION, what + ". Run again node by node, every tensor was finite; run with --debug eager");
  }

  void metrics(Session& s, const gestalt_step_result& r) {
    std::vector<gestalt_metric> m = {{str_of("loss"), r.loss},
                                     {str_of("lr"), r.lr},
                                     {str_of("grad_norm_preclip"), r.grad_norm},
                                     {str_of("tokens_per_second"), progress_->tokens_per_second()},
                                     {str_of("step_seconds"), r.step_seconds},
                                     {str_of("data_seconds"), r.data_seconds},
                                     {str_of("tflops"), progress_->tflops()},
                                     {str_of("memory_peak_bytes"), static_cast<double>(s.info().memory_peak_bytes)},
                                     {str_of("skipped"), static_cast<double>(progress_->num_skipped())}};
    if (progress_->mfu() > 0) m.push_back({str_of("mfu"), progress_->mfu()});
    s.metrics(r.step, m);
  }

  void evaluate(Session& s, int64_t step) {
    const int64_t samples = s.num_samples("valid");
    if (samples != 0) {
      int64_t num = s.i64("train.eval_samples");
      if (num > samples && samples > 0) num = samples;
      const bool whole = num < 0 || num == samples;
      const gestalt_step_result r = s.evaluate("valid", 0, num);
      const double bpb = whole ? bits_per_byte(r, s.bytes_of_text("valid")) : -1;
      progress_->validation(step, r.loss, std::exp(std::min(r.loss, 20.0)), bpb);
      std::vector<gestalt_metric> m = {{str_of("valid_loss"), r.loss}};
      if (bpb >= 0) m.push_back({str_of("valid_bits_per_byte"), bpb});
      s.metrics(step, m);
    }
    if (const std::string_view prompt = s.str("train.sample_prompt"); !prompt.empty()) sample(s, step, prompt);
  }

  // What the model makes of a prompt by now.
  void sample(Session& s, int64_t step, std::string_view prompt) {
    TokenizerRef tokenizer = s.tokenizer();
    support::Continuation continuation(s, {.temperature = 0.8, .top_k = 50});
    continuation.put(tokenizer.encode(prompt));
    support::TextStream stream({});
    const int64_t eos = tokenizer.special("eos");
    for (int64_t i = s.i64("train.sample_tokens"); i > 0; --i) {
      const int32_t id = continuation.next();
      if (id == eos) break;
      stream.push(tokenizer.decode({&id, 1}));
    }
    stream.finish();
    const std::string all = std::string(prompt) + stream.text();
    progress_->print("sample: " + all);
    s.text(step, "sample", all);
  }

  // The session says when a save is done.
  void save(Session& s) {
    progress_->finish();
    s.save();
  }

  void stopped(Session& s, int64_t done, bool saved) {
    progress_->finish();
    if (done > 0 && s.has("checkpoint.type")) {
      if (!saved) s.save();
      s.wait_saved();
      throw Error(GESTALT_INTERRUPTED,
                  text("stopped after step %lld; continue with --resume auto", static_cast<long long>(done)));
    }
    throw Error(GESTALT_INTERRUPTED, done > 0 ? "stopped; there is no [checkpoint] section, so nothing is saved"
                                              : "stopped before the first update; nothing to save");
  }

  Host host_;
  double limit_seconds_ = 0;
  std::optional<int64_t> steps_;
  int64_t log_every_ = 1, max_skipped_ = 1, skipped_ = 0, measured_ = 0;
  Clock::time_point begin_, measure_begin_;
  std::optional<Profile> profile_;
  std::optional<Progress> progress_;
};
GESTALT_COMPONENT(Train)

}  // namespace gestalt::train
