#pragma once

#include <cstdint>
#include <vector>

#include "support/bpe/vocabulary.h"

namespace gestalt::support::bpe {

// Memory that calls of merge_piece reuse; one per thread.
struct MergeScratch {
  struct Part {
    int32_t id;
    uint32_t previous, next;  // UINT32_MAX at the ends; `id` -1: joined into its left neighbour
    Merge merge;              // with `next`
  };
  std::vector<Part> parts;
  std::vector<uint64_t> heap;  // rank << 32 | part
};

// Appends the ids of one piece: from single bytes, joins the neighbours of lowest rank, leftmost first, until no pair
// of neighbours may be joined.
void merge_piece(const Vocabulary& vocabulary, const char* p, size_t size, MergeScratch* scratch,
                 std::vector<int32_t>* out);

}  // namespace gestalt::support::bpe
