// What lies in the folder says what is compared: each kind of comparison is one file that registers itself.
#pragma once

#include <string>
#include <string_view>

#include "gestalt/plugin.hpp"
#include "support/flags.h"
#include "support/json.h"

namespace gestalt::task_parity {

struct Outcome {
  support::Json json;
  std::string text;    // lines for the user
  std::string failed;  // why the result is refused; empty when all is within tolerance
};

struct Comparison {
  std::string_view what;  // "a model with expect.json", for messages
  bool (*applies)(const std::string& path, const support::Flags& flags);
  Outcome (*run)(Session& session, const std::string& path, const support::Flags& flags);
};

GESTALT_REGISTERED(Comparison, comparisons, "gestalt_comparisons")

}  // namespace gestalt::task_parity

#define GESTALT_COMPARISON(...) \
  GESTALT_REGISTER(::gestalt::task_parity::Comparison, "gestalt_comparisons", __VA_ARGS__)
