#include "core/checkpoint/digest.h"

#define XXH_INLINE_ALL  // header only: nothing to link
#include <xxhash.h>

#include "core/base/hash.h"

namespace gestalt::core {

std::string xxh3_hex(const void* data, uint64_t bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, bytes));
  return to_hex(canonical.digest, sizeof(canonical.digest));
}

}  // namespace gestalt::core
