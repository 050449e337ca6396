#include "plugins/data_text/permutation.h"

#include <vector>

#include "tests/catch_compat.hpp"

namespace gestalt::data_text {

TEST_CASE("a permutation takes every index to its own place, for every size") {
  for (uint64_t size = 1; size <= 300; ++size) {
    const Permutation permutation(size, 5);
    std::vector<bool> seen(size);
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t value = permutation(i);
      if (value >= size || seen[value]) FAIL("size " << size << " index " << i);
      seen[value] = true;
    }
  }
}

TEST_CASE("the order looks random and depends on the key") {
  constexpr uint64_t kSize = 10000;
  const Permutation a(kSize, 1), b(kSize, 2);
  uint64_t num_same = 0, num_ascending = 0;
  for (uint64_t i = 0; i < kSize; ++i) num_same += a(i) == b(i);
  for (uint64_t i = 0; i + 1 < kSize; ++i) num_ascending += a(i) < a(i + 1);
  CHECK(num_same < 12);
  CHECK(num_ascending > kSize / 2 - 300);
  CHECK(num_ascending < kSize / 2 + 300);
}

}  // namespace gestalt::data_text
