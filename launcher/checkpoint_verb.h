#pragma once

#include <vector>

#include "launcher/options.h"

namespace gestalt::launcher {

// A command of `gestalt checkpoint`: one file that defines one static object. Every command has --json.
class CheckpointCommand {
 public:
  using Run = int (*)(const Options&);  // returns the exit code
  CheckpointCommand(const char* name, const char* usage, void (*add_options)(Options&), Run run);
  CheckpointCommand(const CheckpointCommand&) = delete;

  static std::vector<const CheckpointCommand*> all();  // by name

  const char *name, *usage;
  void (*add_options)(Options&);
  Run run;
};

}  // namespace gestalt::launcher
