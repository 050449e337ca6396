// gestalt checkpoint COMMAND: finds who serves the command.
#include "launcher/checkpoint_verb.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "core/base/text.h"

namespace gestalt::launcher {
namespace {

std::vector<const CheckpointCommand*>& commands() {
  static std::vector<const CheckpointCommand*> list;
  return list;
}

int run_checkpoint(const Arguments& arguments) {
  std::vector<std::string> names;
  for (const CheckpointCommand* c : CheckpointCommand::all()) names.emplace_back(c->name);
  if (arguments.empty()) throw UsageError(fmt::format("no checkpoint command given, expected {}", core::join(names, ", ")));
  if (arguments[0] == "--help") {
    for (const CheckpointCommand* c : CheckpointCommand::all()) std::fputs(fmt::format("{}\n", c->usage).c_str(), stdout);
    return 0;
  }
  for (const CheckpointCommand* c : CheckpointCommand::all()) {
    if (c->name != arguments[0]) continue;
    Options options(c->usage);
    options.add()("json", "print one JSON object");
    c->add_options(options);
    return options.parse(Arguments(arguments.begin() + 1, arguments.end())) ? c->run(options) : 0;
  }
  const std::string near = core::nearest(arguments[0], names);
  throw UsageError(fmt::format("unknown checkpoint command, got '{}', expected {}{}", core::escape_controls(arguments[0]),
                               core::join(names, ", "), near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

const Verb kCheckpoint("checkpoint", "gestalt checkpoint COMMAND ... | gestalt checkpoint --help",
                       "checkpoints on disk: inspect, verify, compare, export", run_checkpoint);

}  // namespace

CheckpointCommand::CheckpointCommand(const char* name, const char* usage, void (*add_options)(Options&), Run run)
    : name(name), usage(usage), add_options(add_options), run(run) {
  commands().push_back(this);
}

std::vector<const CheckpointCommand*> CheckpointCommand::all() {
  std::vector<const CheckpointCommand*> list = commands();
  std::sort(list.begin(), list.end(), [](const CheckpointCommand* a, const CheckpointCommand* b) {
    return std::string_view(a->name) < b->name;
  });
  return list;
}

}  // namespace gestalt::launcher
