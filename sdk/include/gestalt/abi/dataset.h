/* Gestalt plugin ABI, version 1: component kind "dataset/1": named batches by global sample number.
 *
 * Sample n of a split is a pure function of (corpus, seed, configuration, n), so the order of the data is the same for
 * every layout and nothing but a position has to be saved. */
#pragma once

#include "gestalt/abi/tokenizer.h"

/* One field of a batch. dims: per dimension a name ("tokens", "sequences", "sequences+1") or a number ("2"). Standard
 * fields: tokens i32 [tokens]; labels i32 [tokens]; weights f32 [tokens] (0: not trained); positions i32 [tokens];
 * seq_starts i32 [sequences+1] (starts of attention segments in the flat batch, last = tokens); keys i32 [tokens, 2]
 * (sample number low 31 bits, position in the sample: what random ops are keyed by). */
typedef struct gestalt_field {
  gestalt_str name;
  uint32_t dtype;
  uint32_t ndim;
  gestalt_str dims[4];
} gestalt_field;

typedef struct gestalt_dataset_info {
  uint64_t struct_size;
  const gestalt_field* fields; /* borrowed from the data set */
  uint64_t num_fields;
  int64_t num_samples;             /* of the split; -1: unlimited */
  int64_t max_tokens_per_sample;   /* bound of "tokens" for one sample */
  int64_t max_sequences_per_sample;
  int64_t bytes_of_text;           /* bytes of the split's text that one pass trains on, for bits per byte; -1: unknown */
  uint8_t digest[32];              /* of the corpus and everything that decides the order */
} gestalt_dataset_info;

typedef struct gestalt_dataset_1 {
  uint64_t struct_size;
  /* [setup] Once, before anything else. tokenizer may be NULL when the run names none. */
  gestalt_status* (*open)(void* self, const gestalt_tokenizer_1* tokenizer, void* tokenizer_self, int64_t seq_len,
                          int64_t seed) GESTALT_NOEXCEPT;
  /* [any] split: "train", "valid", "test". NOT_FOUND for a split that is absent. */
  gestalt_status* (*info)(void* self, gestalt_str split, gestalt_dataset_info* out) GESTALT_NOEXCEPT;
  /* [run] Writes the samples one after the other into views (host memory, the order of info.fields, room for the
   * maxima) and the real sizes of "tokens" and "sequences". */
  gestalt_status* (*read)(void* self, gestalt_str split, const int64_t* samples, uint64_t num_samples,
                          gestalt_view* const* out, uint64_t num_out, int64_t* num_tokens,
                          int64_t* num_sequences) GESTALT_NOEXCEPT;
} gestalt_dataset_1;
