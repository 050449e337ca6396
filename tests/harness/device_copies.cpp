#include "tests/harness/device_copies.h"

#include <cstdint>

namespace gestalt::harness {

namespace {

constexpr uintptr_t kAlign = 256;

}  // namespace

void* DeviceCopies::put(std::span<unsigned char> block, const void* at) {
  const auto inside = static_cast<const unsigned char*>(at) - block.data();
  for (const Block& b : blocks_)
    if (b.host.data() == block.data()) return b.begin + inside;
  const uintptr_t phase = reinterpret_cast<uintptr_t>(block.data()) % kAlign;
  Block b{block, device_.alloc(phase + block.size(), core::Category::kOther), nullptr};
  b.begin = static_cast<char*>(b.memory.data()) + phase;
  device_.copy_to_device(b.begin, block.data(), block.size());
  blocks_.push_back(std::move(b));
  return blocks_.back().begin + inside;
}

void DeviceCopies::take_back() {
  device_.sync();
  for (const Block& b : blocks_) device_.copy_to_host(b.host.data(), b.begin, b.host.size());
}

}  // namespace gestalt::harness
