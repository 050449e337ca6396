#pragma once

#include <string>

#include "core/base/error.h"
#include "tests/catch_compat.hpp"

namespace gestalt::test {

// The Error that `function` throws; failing the test when it throws none.
template <class Function>
core::Error thrown_by(Function&& function) {
  try {
    function();
  } catch (const core::Error& e) {
    return e;
  }
  FAIL("no error was thrown");
  return {0, ""};
}

template <class Function>
std::string message_of(Function&& function) {
  return thrown_by(function).message();
}

}  // namespace gestalt::test
