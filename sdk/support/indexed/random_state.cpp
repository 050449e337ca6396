#include "support/indexed/random_state.h"

namespace gestalt::support::indexed {

RandomState::RandomState(uint32_t seed) {
  state_[0] = seed;
  for (uint32_t i = 1; i < state_.size(); ++i) state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
}

void RandomState::refill() {
  constexpr size_t kN = 624, kM = 397;
  for (size_t i = 0; i < kN; ++i) {
    const uint32_t y = (state_[i] & 0x80000000u) | (state_[(i + 1) % kN] & 0x7FFFFFFFu);
    state_[i] = state_[(i + kM) % kN] ^ (y >> 1) ^ (y & 1 ? 0x9908B0DFu : 0u);
  }
  used_ = 0;
}

uint32_t RandomState::next() {
  if (used_ == state_.size()) refill();
  uint32_t y = state_[used_++];
  y ^= y >> 11;
  y ^= y << 7 & 0x9D2C5680u;
  y ^= y << 15 & 0xEFC60000u;
  return y ^ y >> 18;
}

uint64_t RandomState::bounded(uint64_t max) {
  if (max == 0) return 0;
  uint64_t mask = max;
  for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
  for (;;) {
    uint64_t word = next();
    if (max > 0xFFFFFFFFu) word = word << 32 | next();
    word &= mask;
    if (word <= max) return word;
  }
}

}  // namespace gestalt::support::indexed
