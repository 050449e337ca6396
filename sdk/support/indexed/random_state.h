// NumPy's legacy generator (RandomState): MT19937 and its shuffle, bit for bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gestalt::support::indexed {

class RandomState {
 public:
  explicit RandomState(uint32_t seed);

  uint32_t next();
  // Uniform in [0, max]: words masked to the bits of max until one fits; two words, high first, above 32 bits.
  uint64_t bounded(uint64_t max);

  template <class T>
  void shuffle(T* values, int64_t num) {
    for (int64_t i = num - 1; i > 0; --i) std::swap(values[i], values[bounded(static_cast<uint64_t>(i))]);
  }

 private:
  void refill();

  std::array<uint32_t, 624> state_;
  size_t used_ = 624;
};

}  // namespace gestalt::support::indexed
