// gestalt bench NAME: the benchmarks that registered themselves (benchmark.h).
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "launcher/benchmark.h"
#include "launcher/options.h"

namespace gestalt::launcher {
namespace {

constexpr const char* kUsage = "gestalt bench NAME [--json] [--check]";

const Benchmark& find_benchmark(const std::string& name) {
  std::vector<std::string> names;
  for (const Benchmark* b : Benchmark::all()) {
    if (b->name() == name) return *b;
    names.emplace_back(b->name());
  }
  const std::string near = core::nearest(name, names);
  throw UsageError(fmt::format("unknown benchmark, got '{}', expected one of {}{}", core::escape_controls(name),
                               core::join(names, ", "), near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

const char* verdict(const Measured& m) {
  if (m.fails()) return "FAIL";
  if (m.over()) return "over";
  return m.target > 0 ? "PASS" : "-";
}

void print_table(const std::vector<Measured>& lines) {
  std::fputs(fmt::format("{:<64} {:>10} {:>10}\n", fmt::format("lowest of {} runs", kBenchRuns), "ns", "target").c_str(),
             stdout);
  for (const Measured& m : lines)
    std::fputs(fmt::format("{:<64} {:>10.1f} {:>10} {}\n", m.what, m.nanoseconds,
                           m.target > 0 ? fmt::format("< {:.0f}", m.target) : "-", verdict(m))
                   .c_str(),
               stdout);
}

void print_json(const Benchmark& benchmark, const std::vector<Measured>& lines) {
  nlohmann::ordered_json j;
  j["benchmark"] = benchmark.name();
  j["runs"] = kBenchRuns;
  for (const Measured& m : lines) {
    nlohmann::ordered_json line = {{"what", m.what}, {"nanoseconds", m.nanoseconds}};
    if (m.target > 0) line["target"] = m.target;
    if (m.limit > 0) line["limit"] = m.limit;
    line["verdict"] = verdict(m);
    j["lines"].push_back(std::move(line));
  }
  std::puts(j.dump(2).c_str());
}

int run_bench(const Arguments& arguments) {
  Options options(kUsage);
  options.add()("name", po::value<std::string>(), "which benchmark")("json", "one JSON object")(
      "check", "exit 1 when a line is above its limit (far above its target: machines are noisy)");
  options.positional("name", 1);
  if (!options.parse(arguments)) return 0;
  if (!options.has("name")) {
    std::string names;
    for (const Benchmark* b : Benchmark::all()) names += fmt::format("\n  {:<12} {}", b->name(), b->summary());
    throw UsageError("which benchmark?" + names);
  }
  const Benchmark& benchmark = find_benchmark(options.text("name"));
  const std::vector<Measured> lines = benchmark.run();
  if (options.has("json"))
    print_json(benchmark, lines);
  else
    print_table(lines);
  const bool failed = std::any_of(lines.begin(), lines.end(), [](const Measured& m) { return m.fails(); });
  return options.has("check") && failed ? 1 : 0;
}

const Verb kBench("bench", kUsage, "what the plugin border and other small things cost", run_bench);

}  // namespace
}  // namespace gestalt::launcher
