// Short pieces, nearly all of them, are merged by scanning a small array for the lowest rank; long ones by a heap over
// a linked list, so that a megabyte without a space takes n log n.
#include "plugins/tokenizer_bpe/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "gestalt/error.hpp"

namespace gestalt::tokenizer_bpe {
namespace {

constexpr size_t kShort = 64;

void merge_short(const Vocabulary& vocabulary, const char* p, size_t size, std::vector<int32_t>* out) {
  int32_t ids[kShort];
  Merge merges[kShort];
  size_t n = size;
  for (size_t i = 0; i < n; ++i) ids[i] = vocabulary.byte_id(static_cast<uint8_t>(p[i]));
  for (size_t i = 0; i + 1 < n; ++i) merges[i] = vocabulary.pair(ids[i], ids[i + 1]);
  while (n > 1) {
    size_t best = 0;
    uint32_t rank = merges[0].rank;
    for (size_t i = 1; i + 1 < n; ++i) {
      if (merges[i].rank < rank) {
        rank = merges[i].rank;
        best = i;
      }
    }
    if (rank == kNoRank) break;
    ids[best] = merges[best].id;
    for (size_t i = best + 1; i + 1 < n; ++i) ids[i] = ids[i + 1];
    for (size_t i = best; i + 2 < n; ++i) merges[i] = merges[i + 1];
    --n;
    if (best + 1 < n) merges[best] = vocabulary.pair(ids[best], ids[best + 1]);
    if (best > 0) merges[best - 1] = vocabulary.pair(ids[best - 1], ids[best]);
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

}  // namespace gestalt::tokenizer_bpe
