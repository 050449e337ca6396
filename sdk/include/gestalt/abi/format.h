/* Gestalt plugin ABI, version 1: component kind "format/1": models that other programs wrote, read as a run file and
 * logical tensors. [setup] but for read. */
#pragma once

#include "gestalt/abi/checkpoint.h"
#include "gestalt/abi/tokenizer.h"

/* Lines of a model's key report; the kind goes as `item` of the sink. */
#define GESTALT_KEY_LOADED 0
#define GESTALT_KEY_MISSING 1    /* asked for, not stored */
#define GESTALT_KEY_UNEXPECTED 2 /* stored, never asked for */
#define GESTALT_KEY_RESHAPED 3   /* loaded after a change of layout: transposed, fused, permuted */
#define GESTALT_KEY_TIED 4       /* stored a second time under another name, or left out because another tensor serves */
#define GESTALT_KEY_IGNORED 5    /* stored, but known to carry nothing (tables that are computed) */
#define GESTALT_KEY_SETTING 6    /* "foo is 3 in /x/config.json": a setting that is not understood, its key first */

/* A model that is to be written. */
typedef struct gestalt_model_source {
  uint64_t struct_size;
  void* self;
  const gestalt_attr* config; /* [model], complete: "hidden", "slots.sliding.window" */
  uint64_t num_config;
  const gestalt_shard* tensors; /* every parameter: name, shape, parts, dtype; view.data is NULL */
  uint64_t num_tensors;
  /* Fills contiguous host memory with a whole tensor of that list, in its dtype. */
  gestalt_status* (*read)(void* self, gestalt_str name, void* data, uint64_t bytes) GESTALT_NOEXCEPT;
} gestalt_model_source;

typedef struct gestalt_format_1 {
  uint64_t struct_size;
  /* 1: the file or folder at `path` is of this format, by its content. */
  int32_t (*detect)(void* self, gestalt_str path) GESTALT_NOEXCEPT;
  /* tensors_file: a file of tensors under the model's names, "" for the model's own files; prefix is put before every
   * stored name ("grad."). */
  gestalt_status* (*open)(void* self, gestalt_str path, gestalt_str tensors_file, gestalt_str prefix,
                          void** model) GESTALT_NOEXCEPT;
  /* The run file that describes the model, as TOML: [run] name, [plugins] use, [model], and [tokenizer] if known. */
  gestalt_status* (*config)(void* model, const gestalt_byte_sink* sink) GESTALT_NOEXCEPT;
  /* [any] Fills a whole logical tensor ("model.layers.0.mlp.up.weight", contiguous host memory), converted to the
   * view's dtype. NOT_FOUND when nothing stored gives it; DATA_ERROR for another shape. */
  gestalt_status* (*read)(void* model, gestalt_str name, gestalt_view* out) GESTALT_NOEXCEPT;
  /* What read has met so far, one line a key. */
  gestalt_status* (*report)(void* model, const gestalt_byte_sink* sink) GESTALT_NOEXCEPT;
  void (*close)(void* model) GESTALT_NOEXCEPT;
  /* Writes a model of this format into an empty folder, reading one tensor at a time. options: "family" (str; empty: the
   * first that expresses the model) and "shard_bytes" (i64). UNSUPPORTED, with what the format lacks, for a model that
   * it cannot express. */
  gestalt_status* (*save)(void* self, gestalt_str folder, const gestalt_model_source* source, const gestalt_attr* options,
                          uint64_t num_options) GESTALT_NOEXCEPT;
} gestalt_format_1;
