#include "plugins/data_text/permutation.h"

namespace gestalt::data_text {

namespace {

uint64_t finished(uint64_t z) noexcept {
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

}  // namespace

uint64_t mixed(uint64_t a, uint64_t b) noexcept { return finished(finished(a + 0x9E3779B97F4A7C15u) ^ b); }

Permutation::Permutation(uint64_t size, uint64_t key) noexcept : size_(size), half_bits_(1) {
  while (half_bits_ < 31 && uint64_t{1} << 2 * half_bits_ < size) ++half_bits_;
  half_mask_ = (uint64_t{1} << half_bits_) - 1;
  for (uint64_t round = 0; round < 4; ++round) round_keys_[round] = mixed(key, round + 1);
}

uint64_t Permutation::operator()(uint64_t index) const noexcept {
  uint64_t value = index;
  do {
    uint64_t left = value >> half_bits_, right = value & half_mask_;
    for (uint64_t key : round_keys_) {
      const uint64_t next = left ^ (mixed(key, right) & half_mask_);
      left = right;
      right = next;
    }
    value = left << half_bits_ | right;
  } while (value >= size_);  // the domain is less than four times the size: four turns at most on average
  return value;
}

}  // namespace gestalt::data_text
