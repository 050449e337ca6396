#include "core/runtime/arena.h"

#include "core/base/error.h"

namespace gestalt::core {

void* Arena::at(uint64_t offset, uint64_t bytes) const {
  if (offset > buffer_.bytes() || bytes > buffer_.bytes() - offset)
    fail(GESTALT_INTERNAL, "[arena] range leaves the arena, got offset {} and {} bytes, expected within {} bytes",
         offset, bytes, buffer_.bytes());
  return static_cast<char*>(buffer_.data()) + offset;
}

}  // namespace gestalt::core
