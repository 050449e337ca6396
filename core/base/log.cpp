#include "core/base/log.h"

#include <ctime>
#include <memory>

#include <unistd.h>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "core/base/error.h"
#include "core/base/text.h"

namespace gestalt::core {

namespace {

std::string_view level_name(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return "debug";
    case spdlog::level::info:
      return "info";
    case spdlog::level::warn:
      return "warn";
    default:
      return "error";
  }
}

// UTC, with milliseconds in JSON.
std::string time_text(std::chrono::system_clock::time_point time, bool json) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  const std::time_t seconds = static_cast<std::time_t>(ms / 1000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  if (!json) return fmt::format("{:02}:{:02}:{:02}", utc.tm_hour, utc.tm_min, utc.tm_sec);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec, ms % 1000);
}

class LineFormatter : public spdlog::formatter {
 public:
  LineFormatter(bool json, bool colour, int rank) : json_(json), colour_(colour), rank_(rank) {}

  void format(const spdlog::details::log_msg& msg, spdlog::memory_buf_t& out) override {
    const std::string_view level = level_name(msg.level);
    const std::string_view message(msg.payload.data(), msg.payload.size());
    const std::string time = time_text(msg.time, json_);
    std::string line =
        json_ ? log_line_json(time, level, rank_, message) : time + " " + log_line_text(level, rank_, message);
    if (colour_ && msg.level >= spdlog::level::warn) {
      const char* code = msg.level == spdlog::level::warn ? "\x1b[33m" : "\x1b[31m";
      line = code + line + "\x1b[0m";
    }
    line += '\n';
    out.append(line.data(), line.data() + line.size());
  }

  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<LineFormatter>(*this); }

 private:
  bool json_, colour_;
  int rank_;
};

}  // namespace

std::string log_line_text(std::string_view level, int rank, std::string_view message) {
  std::string line = rank >= 0 ? fmt::format("{:<5} r{} ", level, rank) : fmt::format("{:<5} ", level);
  const std::vector<std::string> parts = split(message, '\n');
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) line += "\n    ";
    line += escape_controls(parts[i]);
  }
  return line;
}

std::string log_line_json(std::string_view time, std::string_view level, int rank, std::string_view message) {
  const std::string rank_text = rank >= 0 ? fmt::format(R"(,"rank":{})", rank) : "";
  return fmt::format(R"({{"time":"{}","level":"{}"{},"message":{}}})", time, level, rank_text, json_quote(message));
}

void setup_log(const LogOptions& options) {
  static const std::vector<std::string> kLevels = {"debug", "info", "warn", "error"};
  spdlog::level::level_enum level = spdlog::level::off;
  for (spdlog::level::level_enum l :
       {spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err})
    if (level_name(l) == options.level) level = l;
  if (level == spdlog::level::off)
    fail(GESTALT_CONFIG_ERROR, "[log level] unknown level, got '{}', expected {}", escape_controls(options.level),
         join(kLevels, ", "));
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  const bool json = options.form == LogForm::kJson || (options.form == LogForm::kAutomatic && !terminal);
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>("gestalt", std::move(sink));
  logger->set_level(level);
  logger->set_formatter(std::make_unique<LineFormatter>(json, terminal && !json, options.rank));
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace gestalt::core
