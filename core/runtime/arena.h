#pragma once

#include "core/runtime/device.h"

namespace gestalt::core {

// One allocation whose size the memory plan fixed. The plan hands out offsets; nothing is allocated here later.
class Arena {
 public:
  Arena() = default;
  Arena(Device& device, uint64_t bytes, Category category) : buffer_(device.alloc(bytes, category)) {}

  uint64_t bytes() const { return buffer_.bytes(); }
  // The address of [offset, offset + bytes). Fails when that leaves the arena.
  void* at(uint64_t offset, uint64_t bytes = 0) const;

 private:
  Buffer buffer_;
};

}  // namespace gestalt::core
