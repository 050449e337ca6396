#pragma once

#include <string>
#include <string_view>

namespace gestalt::core {

enum class LogForm { kAutomatic, kText, kJson };

struct LogOptions {
  std::string level = "info";          // debug, info, warn, error
  LogForm form = LogForm::kAutomatic;  // text on a terminal, JSON lines otherwise
  int rank = -1;                       // printed when it is not negative
};

// [setup] Makes standard error the process's log, through spdlog's default logger. An unknown level is a CONFIG_ERROR.
void setup_log(const LogOptions& options);

// The text form of one line without time and colour, and the JSON form. Control bytes are escaped; in the text form
// continuation lines are indented, so that no message can imitate another line.
std::string log_line_text(std::string_view level, int rank, std::string_view message);
std::string log_line_json(std::string_view time, std::string_view level, int rank, std::string_view message);

}  // namespace gestalt::core
