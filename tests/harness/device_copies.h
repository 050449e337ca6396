#pragma once

#include <span>
#include <vector>

#include "core/runtime/device.h"

namespace gestalt::harness {

// Guarded memory of the harness on a device whose memory the host cannot touch: each block goes there whole, guard
// zones included, and comes back whole. Blocks are allocated to the byte, so that a memory checker sees what runs past
// them.
class DeviceCopies {
 public:
  explicit DeviceCopies(core::Device& device) : device_(device) {}

  // Copies there; the address for `at`, which lies inside the block, aligned as it is on the host.
  void* put(std::span<unsigned char> block, const void* at);
  // Waits, and copies every block back.
  void take_back();

 private:
  struct Block {
    std::span<unsigned char> host;
    core::Buffer memory;
    char* begin;
  };

  core::Device& device_;
  std::vector<Block> blocks_;
};

}  // namespace gestalt::harness
