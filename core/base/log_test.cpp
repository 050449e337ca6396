#include "core/base/log.h"

#include <nlohmann/json.hpp>

#include "tests/catch_compat.hpp"
#include "tests/thrown_error.h"

using namespace gestalt::core;

TEST_CASE("A text line cannot imitate another line or drive the terminal") {
  CHECK(log_line_text("info", -1, "hello") == "info  hello");
  CHECK(log_line_text("warn", 3, "a\x1b[2J") == "warn  r3 a\\x1b[2J");
  CHECK(log_line_text("info", -1, "a\nerror forged") == "info  a\n    error forged");
}

TEST_CASE("A JSON line is one line and valid JSON whatever the message") {
  const std::string line = log_line_json("2026-01-01T00:00:00.000Z", "error", 2, "a\nb\"\\\xFF\x01");
  CHECK(line.find('\n') == std::string::npos);
  const auto parsed = nlohmann::json::parse(line);
  CHECK(parsed["level"] == "error");
  CHECK(parsed["rank"] == 2);
  CHECK(parsed["message"] == "a\nb\"\\\xEF\xBF\xBD\x01");
  CHECK_FALSE(nlohmann::json::parse(log_line_json("t", "info", -1, "x")).contains("rank"));
}

TEST_CASE("An unknown log level is refused with the valid ones") {
  const auto e = gestalt::test::thrown_by([] { setup_log({.level = "loud"}); });
  CHECK(e.code() == GESTALT_CONFIG_ERROR);
  CHECK(e.message() == "[log level] unknown level, got 'loud', expected debug, info, warn, error");
}
