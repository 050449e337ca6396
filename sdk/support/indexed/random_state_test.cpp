#include "support/indexed/random_state.h"

#include <numeric>

#include "tests/catch_compat.hpp"

namespace gestalt::support::indexed {
namespace {

std::vector<int> shuffled(uint32_t seed, int n) {
  std::vector<int> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  RandomState(seed).shuffle(values.data(), n);
  return values;
}

}  // namespace

TEST_CASE("The shuffle gives NumPy's published permutations") {
  CHECK(shuffled(0, 10) == std::vector<int>{2, 8, 4, 9, 1, 6, 7, 3, 0, 5});
  CHECK(shuffled(42, 10) == std::vector<int>{8, 1, 5, 0, 7, 2, 9, 4, 3, 6});
  CHECK(shuffled(1234, 10) == std::vector<int>{7, 2, 9, 1, 0, 8, 4, 5, 6, 3});
}

TEST_CASE("The words are those of MT19937") {
  RandomState random(5489);
  uint32_t word = 0;
  for (int i = 0; i < 10000; ++i) word = random.next();
  CHECK(word == 4123659995u);  // the 10,000th of the default seed, as the C++ standard states
}

TEST_CASE("A bound above 32 bits takes two words, the high one first") {
  RandomState words(7), bounded(7);
  const uint64_t max = (uint64_t{1} << 40) - 1;
  const uint64_t high = words.next(), low = words.next();
  CHECK(bounded.bounded(max) == ((high << 32 | low) & max));
  CHECK(RandomState(7).bounded(0) == 0);
}

TEST_CASE("Shuffles of nothing and of one element draw nothing") {
  RandomState random(3), fresh(3);
  int one = 9;
  random.shuffle(&one, 1);
  random.shuffle(&one, 0);
  CHECK(random.next() == fresh.next());
}

}  // namespace gestalt::support::indexed
