#pragma once

#include <cstdint>

namespace gestalt::data_text {

// A shuffle of [0, size) without an array: a Feistel network over the next power of four, walked until it falls inside.
// The order is a pure function of (size, key).
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t key) noexcept;
  uint64_t operator()(uint64_t index) const noexcept;  // index < size

 private:
  uint64_t size_, half_bits_, half_mask_;
  uint64_t round_keys_[4];
};

// A well-mixed 64-bit function of two words (the finisher of splitmix64).
uint64_t mixed(uint64_t a, uint64_t b) noexcept;

}  // namespace gestalt::data_text
