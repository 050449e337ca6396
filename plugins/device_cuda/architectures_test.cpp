#include "plugins/device_cuda/architectures.h"

#include "tests/catch_compat.hpp"

using gestalt::device_cuda::code_runs_on;
using gestalt::device_cuda::readable;

TEST_CASE("machine code runs on its own major number from its minor number on") {
  CHECK(code_runs_on("80-real", 8, 0));
  CHECK(code_runs_on("80-real", 8, 9));
  CHECK_FALSE(code_runs_on("86-real", 8, 0));
  CHECK_FALSE(code_runs_on("80-real", 9, 0));
}

TEST_CASE("code with the features of one architecture runs on that one alone") {
  CHECK(code_runs_on("80-real,90a-real", 9, 0));
  CHECK_FALSE(code_runs_on("90a-real", 10, 0));
  CHECK_FALSE(code_runs_on("80-real,90a-real", 7, 5));
}

TEST_CASE("intermediate code runs on everything newer") {
  CHECK(code_runs_on("80", 12, 0));
  CHECK(code_runs_on("80-virtual", 9, 0));
  CHECK_FALSE(code_runs_on("80-virtual", 7, 5));
}

TEST_CASE("a list of architectures is readable") {
  CHECK(readable("80-real,90a-real") == "8.0, 9.0a");
  CHECK(readable("80") == "8.0 and newer");
}
