#pragma once

#include <cstdint>
#include <string>

namespace gestalt::core {

// XXH3-128 of bytes in canonical order: 32 lower-case hexadecimal digits. Finds damage, not malice.
std::string xxh3_hex(const void* data, uint64_t bytes);

}  // namespace gestalt::core
