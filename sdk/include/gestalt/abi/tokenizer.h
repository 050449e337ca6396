/* Gestalt plugin ABI, version 1: component kind "tokenizer/1": bytes to ids and back. All functions [any]. */
#pragma once

#include "gestalt/abi/plugin.h"

/* Where results go, so that nobody guesses sizes. For each item any number of calls, in order; items in any order. */
typedef struct gestalt_id_sink {
  uint64_t struct_size;
  void* self;
  void (*put)(void* self, uint64_t item, const int32_t* ids, uint64_t num) GESTALT_NOEXCEPT;
} gestalt_id_sink;

typedef struct gestalt_byte_sink {
  uint64_t struct_size;
  void* self;
  void (*put)(void* self, uint64_t item, gestalt_str bytes) GESTALT_NOEXCEPT;
} gestalt_byte_sink;

/* encode flags: how special tokens spelled in the text are taken. Default: as plain text. */
#define GESTALT_ENCODE_ALLOW_SPECIAL 1u
#define GESTALT_ENCODE_REFUSE_SPECIAL 2u /* DATA_ERROR naming the token and its byte offset */

typedef struct gestalt_tokenizer_1 {
  uint64_t struct_size;
  gestalt_status* (*encode_batch)(void* self, const gestalt_str* texts, uint64_t num, uint64_t flags,
                                  const gestalt_id_sink* sink) GESTALT_NOEXCEPT;
  /* ids of item i are ids[offsets[i]] to ids[offsets[i + 1]]; offsets has num + 1 entries. An id outside the vocabulary
   * is INVALID_ARGUMENT. */
  gestalt_status* (*decode_batch)(void* self, const int32_t* ids, const uint64_t* offsets, uint64_t num,
                                  const gestalt_byte_sink* sink) GESTALT_NOEXCEPT;
  int64_t (*vocab_size)(void* self) GESTALT_NOEXCEPT;
  /* The id of a role ("bos", "eos", "pad", "unk") or of a special token by its text; -1 if there is none. */
  int64_t (*special)(void* self, gestalt_str role) GESTALT_NOEXCEPT;
  /* 32 bytes that change whenever any text may encode differently. */
  void (*fingerprint)(void* self, uint8_t out[32]) GESTALT_NOEXCEPT;
} gestalt_tokenizer_1;
