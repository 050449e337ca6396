#include "support/bpe/unicode.h"

#include <algorithm>

namespace gestalt::support::bpe {

CharClasses::CharClasses() {
  constexpr uint32_t kCodes = 0x110000, kBlock = 1u << kShift;
  blocks_.resize(kCodes >> kShift);
  size_t run = 0;
  const auto first = [](size_t r) { return r < kNumUnicodeRuns ? kUnicodeRuns[r] >> 3 : kCodes; };
  std::vector<uint8_t> block(kBlock);
  for (uint32_t b = 0; b < kCodes >> kShift; ++b) {
    for (uint32_t i = 0; i < kBlock; ++i) {
      while (first(run + 1) <= b * kBlock + i) ++run;
      block[i] = static_cast<uint8_t>(kUnicodeRuns[run] & 7);
    }
    size_t same = 0;
    const size_t known = classes_.size() / kBlock;
    while (same < known &&
           !std::equal(block.begin(), block.end(), classes_.begin() + static_cast<ptrdiff_t>(same * kBlock)))
      ++same;
    if (same == known) classes_.insert(classes_.end(), block.begin(), block.end());
    blocks_[b] = static_cast<uint16_t>(same);
  }
}

}  // namespace gestalt::support::bpe
