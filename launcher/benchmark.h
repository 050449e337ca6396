#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace gestalt::launcher {

constexpr int kBenchRuns = 9;  // machines are shared: the lowest of these is what counts

// One line of a benchmark's table. target and limit 0: measured for comparison only.
struct Measured {
  std::string what;
  double nanoseconds = 0;
  double target = 0;  // what we want; above it the line says "over"
  double limit = 0;   // above it --check fails
  bool over() const { return target > 0 && nanoseconds >= target; }
  bool fails() const { return limit > 0 && nanoseconds > limit; }
};

// A benchmark of `gestalt bench NAME`. A file that adds one defines one static object.
class Benchmark {
 public:
  using Run = std::vector<Measured> (*)();
  Benchmark(const char* name, const char* summary, Run run);
  Benchmark(const Benchmark&) = delete;

  const char* name() const { return name_; }
  const char* summary() const { return summary_; }
  std::vector<Measured> run() const { return run_(); }

  static std::vector<const Benchmark*> all();  // by name

 private:
  const char *name_, *summary_;
  Run run_;
};

// Nanoseconds of one of `count` items that `f()` handles in one call: the lowest of kBenchRuns calls. `before` prepares
// each of them untimed.
template <class Before, class F>
double lowest_ns(int64_t count, Before before, F f) {
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kBenchRuns; ++run) {
    before();
    const auto begin = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / static_cast<double>(count));
  }
  return best;
}

}  // namespace gestalt::launcher
