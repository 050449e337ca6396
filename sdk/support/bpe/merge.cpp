// Short pieces, nearly all of them, are merged by scanning a small array for the lowest rank; long ones by a heap over
// a linked list, so that a megabyte without a space takes n log n.
#include "support/bpe/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "gestalt/error.hpp"

namespace gestalt::support::bpe {
namespace {

constexpr size_t kShort = 64;

void merge_short(const Vocabulary& vocabulary, const char* p, size_t size, std::vector<int32_t>* out) {
  int32_t ids[kShort], made[kShort];
  uint32_t ranks[kShort];  // of the pair that starts here; apart from the rest, so that the scan is one of plain words
  const auto look_up = [&](size_t i) {
    const Merge merge = vocabulary.pair(ids[i], ids[i + 1]);
    ranks[i] = merge.rank;
    made[i] = merge.id;
  };
  size_t n = size;
  for (size_t i = 0; i < n; ++i) ids[i] = vocabulary.byte_id(static_cast<uint8_t>(p[i]));
  for (size_t i = 0; i + 1 < n; ++i) look_up(i);
  while (n > 1) {
    uint32_t lowest = ranks[0];
    for (size_t i = 1; i + 1 < n; ++i) lowest = std::min(lowest, ranks[i]);
    if (lowest == kNoRank) break;
    size_t best = 0;
    while (ranks[best] != lowest) ++best;
    ids[best] = made[best];
    --n;
    std::memmove(ids + best + 1, ids + best + 2, (n - best - 1) * sizeof ids[0]);
    if (best + 1 < n) {
      std::memmove(ranks + best, ranks + best + 1, (n - best - 1) * sizeof ranks[0]);
      std::memmove(made + best, made + best + 1, (n - best - 1) * sizeof made[0]);
      look_up(best);
    }
    if (best > 0) look_up(best - 1);
  }
  out->insert(out->end(), ids, ids + n);
}

void merge_long(const Vocabulary& vocabulary, const char* p, size_t size, MergeScratch* scratch,
                std::vector<int32_t>* out) {
  constexpr uint32_t kEnd = UINT32_MAX;
  if (size >= kEnd)
    throw InvalidArgument(fmt::format("[encode] one piece has {} bytes, expected fewer than {}", size, kEnd));
  auto& parts = scratch->parts;
  auto& heap = scratch->heap;
  parts.resize(size);
  heap.clear();
  const auto n = static_cast<uint32_t>(size);
  for (uint32_t i = 0; i < n; ++i)
    parts[i] = {
        vocabulary.byte_id(static_cast<uint8_t>(p[i])), i ? i - 1 : kEnd, i + 1 < n ? i + 1 : kEnd, {kNoRank, -1}};
  const auto refresh = [&](uint32_t i) {
    auto& part = parts[i];
    part.merge = part.next == kEnd ? Merge{kNoRank, -1} : vocabulary.pair(part.id, parts[part.next].id);
    if (part.merge.rank != kNoRank) heap.push_back(static_cast<uint64_t>(part.merge.rank) << 32 | i);
    return part.merge.rank != kNoRank;
  };
  for (uint32_t i = 0; i < n; ++i) refresh(i);
  const auto later = std::greater<uint64_t>();
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const auto i = static_cast<uint32_t>(heap.back());
    const auto rank = static_cast<uint32_t>(heap.back() >> 32);
    heap.pop_back();
    auto& part = parts[i];
    if (part.id < 0 || part.merge.rank != rank) continue;
    auto& gone = parts[part.next];
    part.id = part.merge.id;
    part.next = gone.next;
    gone.id = -1;
    if (part.next != kEnd) parts[part.next].previous = i;
    if (refresh(i)) std::push_heap(heap.begin(), heap.end(), later);
    if (part.previous != kEnd && refresh(part.previous)) std::push_heap(heap.begin(), heap.end(), later);
  }
  for (uint32_t i = 0; i != kEnd; i = parts[i].next) out->push_back(parts[i].id);
}

}  // namespace

void merge_piece(const Vocabulary& vocabulary, const char* p, size_t size, MergeScratch* scratch,
                 std::vector<int32_t>* out) {
  if (size == 0) return;
  if (size <= kShort) {
    merge_short(vocabulary, p, size, out);
  } else {
    merge_long(vocabulary, p, size, scratch, out);
  }
}

}  // namespace gestalt::support::bpe
