#include "core/runtime/ledger.h"

#include "tests/catch_compat.hpp"

namespace gestalt::core {

TEST_CASE("the ledger keeps current and peak bytes by category") {
  Ledger ledger;
  ledger.add(Category::kWeights, 100);
  ledger.add(Category::kActivations, 50);
  ledger.remove(Category::kActivations, 50);
  ledger.add(Category::kOptimizer, 30);
  CHECK(ledger.line(Category::kActivations).current == 0);
  CHECK(ledger.line(Category::kActivations).peak == 50);
  CHECK(ledger.total().current == 130);
  CHECK(ledger.total().peak == 150);
}

TEST_CASE("pinned host memory is listed but not counted as device memory") {
  Ledger ledger;
  ledger.add(Category::kPinned, 4096);
  CHECK(ledger.total().peak == 0);
  CHECK(ledger.table().find("pinned") != std::string::npos);
}

TEST_CASE("the ledger's table lists used categories only") {
  Ledger ledger;
  ledger.add(Category::kGradients, 12345);
  const std::string text = ledger.table();
  CHECK(text.find("gradients") != std::string::npos);
  CHECK(text.find("12345") != std::string::npos);
  CHECK(text.find("weights") == std::string::npos);
}

}  // namespace gestalt::core
