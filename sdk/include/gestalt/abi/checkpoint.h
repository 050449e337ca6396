/* Gestalt plugin ABI, version 1: component kind "checkpoint/1": writes and reads shard files. The host owns attempts,
 * coverage, digests, the commit record, renames and retention. A path names one shard file; the plugin appends nothing. */
#pragma once

#include "gestalt/abi/plugin.h"

/* A piece of a logical tensor: `view` (host memory, contiguous) lies at `offset` in a tensor of shape `global`. */
typedef struct gestalt_shard {
  uint64_t struct_size;
  gestalt_str name;      /* "model.layers.0.mlp.up.weight" */
  const int64_t* global; /* view.ndim entries */
  const int64_t* offset;
  const int64_t* parts;  /* layout tag: sizes of the fused parts along dimension 0 */
  uint64_t num_parts;
  gestalt_view view;
} gestalt_shard;

typedef struct gestalt_shard_sink {
  uint64_t struct_size;
  void* self;
  void (*put)(void* self, const gestalt_shard* shard) GESTALT_NOEXCEPT; /* view.data is NULL */
} gestalt_shard_sink;

typedef struct gestalt_checkpoint_1 {
  uint64_t struct_size;
  gestalt_str extension; /* ".safetensors": of a shard file */
  gestalt_status* (*open_write)(void* self, gestalt_str path, void** writer) GESTALT_NOEXCEPT; /* [setup] */
  gestalt_status* (*put)(void* writer, const gestalt_shard* shard) GESTALT_NOEXCEPT; /* [any] data is borrowed until close */
  /* [setup] Writes, syncs and frees the writer. commit 0: abandons and removes the file. */
  gestalt_status* (*close_write)(void* writer, int32_t commit) GESTALT_NOEXCEPT;
  gestalt_status* (*open_read)(void* self, gestalt_str path, void** reader) GESTALT_NOEXCEPT; /* [setup] */
  gestalt_status* (*list)(void* reader, const gestalt_shard_sink* sink) GESTALT_NOEXCEPT;
  gestalt_status* (*get)(void* reader, gestalt_str name, gestalt_view* out) GESTALT_NOEXCEPT; /* [any] fills out->data */
  void (*close_read)(void* reader) GESTALT_NOEXCEPT;
} gestalt_checkpoint_1;
