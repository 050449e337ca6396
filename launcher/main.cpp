// The gestalt command: finds who serves the verb, runs it, and turns what went wrong into an exit code.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>

#include <unistd.h>

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "launcher/verb.h"

namespace gestalt::launcher {
namespace {

constexpr int kUsageExit = 2;
constexpr const char* kUsage = "gestalt VERB [ARGUMENTS...] | gestalt VERB --help | gestalt --help | gestalt --version";

struct Served {
  const VerbSource* source;
  VerbLine line;
};

std::optional<Served> find_verb(std::string_view name) {
  for (const VerbSource* source : VerbSource::all())
    for (VerbLine& line : source->verbs())
      if (line.name == name) return Served{source, std::move(line)};
  return std::nullopt;
}

std::vector<VerbLine> all_verbs() {
  std::vector<VerbLine> lines;
  for (const VerbSource* source : VerbSource::all())
    for (VerbLine& line : source->verbs())
      if (line.name[0] != '_') lines.push_back(std::move(line));  // _name: the program's own use
  std::sort(lines.begin(), lines.end(), [](const VerbLine& a, const VerbLine& b) { return a.name < b.name; });
  return lines;
}

int print_help() {
  std::string text = fmt::format("{}\n\nverbs:\n", kUsage);
  for (const VerbLine& line : all_verbs()) text += fmt::format("  {:<12} {}\n", line.name, line.summary);
  std::fputs(text.c_str(), stdout);
  return 0;
}

int print_version() {
  std::fputs(
      fmt::format("gestalt {} (plugin ABI {}.{})\n", GESTALT_VERSION, GESTALT_ABI_MAJOR, GESTALT_ABI_MINOR).c_str(),
      stdout);
  return 0;
}

// Flags that stand where a verb would.
struct Flag {
  std::string_view name;
  int (*run)();
};
constexpr Flag kFlags[] = {
    {"--help", print_help}, {"-h", print_help}, {"help", print_help}, {"--version", print_version}};

[[noreturn]] void refuse_verb(std::string_view name) {
  std::vector<std::string> names;
  for (const VerbLine& line : all_verbs()) names.push_back(line.name);
  const std::string near = core::nearest(name, names);
  throw UsageError(fmt::format("unknown verb, got '{}', expected one of {}{}", core::escape_controls(name),
                               core::join(names, ", "), near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

int run(const Arguments& arguments, std::string& usage) {
  if (arguments.empty()) throw UsageError("no verb given");
  for (const Flag& flag : kFlags)
    if (arguments[0] == flag.name) return flag.run();
  const std::optional<Served> served = find_verb(arguments[0]);
  if (!served) refuse_verb(arguments[0]);
  usage = served->line.usage;
  return served->source->run(arguments[0], Arguments(arguments.begin() + 1, arguments.end()));
}

int report(const std::string& message, int code) {
  std::fputs(fmt::format("gestalt: {}\n", message).c_str(), stderr);
  return code;
}

// libgomp reads its environment when it is loaded. By default its idle threads spin for seconds, which on a shared
// machine costs more than the work; a bounded spin is as fast alone and an order of magnitude faster beside others.
void bound_spinning(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  setenv("GOMP_SPINCOUNT", "20000", 0);
  execv("/proc/self/exe", argv);  // returns only on failure, and then nothing is lost but speed
}

}  // namespace
}  // namespace gestalt::launcher

int main(int argc, char** argv) {
  using namespace gestalt;
  launcher::bound_spinning(argv);
  std::string usage = launcher::kUsage;
  try {
    core::setup_log({});
    return launcher::run(launcher::Arguments(argv + (argc > 0 ? 1 : 0), argv + argc), usage);
  } catch (const launcher::UsageError& e) {
    return launcher::report(fmt::format("{}\nusage: {}", e.what(), e.usage().empty() ? usage : e.usage()),
                            launcher::kUsageExit);
  } catch (const core::Error& e) {
    return launcher::report(fmt::format("error: {}", e.message()), core::exit_code(e.code()));
  } catch (const std::bad_alloc&) {
    return launcher::report("error: out of memory", core::exit_code(GESTALT_OUT_OF_MEMORY));
  } catch (const std::exception& e) {
    return launcher::report(fmt::format("internal error: {}", e.what()), core::exit_code(GESTALT_INTERNAL));
  }
}
