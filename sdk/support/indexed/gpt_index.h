// Megatron's order of samples in one corpus: which sequences in which order, where each sample starts, and the order of
// samples. The arrays equal its own, types included.
#pragma once

#include <cstdint>
#include <functional>

#include "support/indexed/index_array.h"
#include "support/indexed/index_file.h"

namespace gestalt::support::indexed {

struct GptIndexRequest {
  int64_t begin = 0, end = 0;  // exposed sequences [begin, end)
  int64_t num_samples = -1;    // -1: one epoch
  int64_t seq_len = 0;
  int64_t extra = 1;  // tokens drawn past seq_len
  uint32_t seed = 0;
  bool keep_partial = false;  // the tail that is shorter than a sample becomes one
};

struct GptIndex {
  IndexArray documents;  // i32: sequence ids, epoch by epoch
  IndexArray samples;    // i32 or i64 [n + 1, 2]: position in documents, token offset
  IndexArray shuffle;    // u32 or i64 [n]
  int64_t num_epochs = 0;
  bool separate_last_epoch = false;

  int64_t num_samples() const { return shuffle.size(); }
};

// What decides the sizes, before anything is built.
struct GptPlan {
  int64_t tokens_per_epoch = 0, num_epochs = 1, num_samples = 0;
  int64_t samples_without_last = 0;  // samples of all epochs but the last, when that is shuffled on its own
  bool separate_last_epoch = false;
  bool wide_samples = false;  // i64 rows
  bool wide_shuffle = false;  // i64
};
GptPlan plan_gpt_index(const IndexFile& corpus, const GptIndexRequest& request);

// DATA_ERROR when the exposed sequences do not hold one sample.
GptIndex build_gpt_index(const IndexFile& corpus, const GptIndexRequest& request);

}  // namespace gestalt::support::indexed
