/* Gestalt plugin ABI, version 1: component kind "optimizer/1". An optimizer declares its state and emits its update in
 * ops; it never sees a mesh, a collective or data. The host owns, shards, saves and reshards the state. All [setup]. */
#pragma once

#include "gestalt/abi/build.h"

#define GESTALT_GRANULARITY_ELEMENT 0 /* flat shards, cut anywhere */
#define GESTALT_GRANULARITY_MATRIX 1  /* whole matrices */

/* step_scalars, f32 [8], rewritten before every step. */
#define GESTALT_SCALAR_LR 0
#define GESTALT_SCALAR_STEP 1       /* number of this update, from 1 */
#define GESTALT_SCALAR_INV_TOKENS 2 /* 1 / (sum of token weights of the global batch) */
#define GESTALT_SCALAR_LOSS_SCALE 3
#define GESTALT_NUM_SCALARS 8
/* step_seed, i32 [4]: seed low, seed high, step low, step high (bit patterns). */

typedef struct gestalt_optimizer_state {
  gestalt_str name; /* "m" */
  uint32_t dtype;   /* 0: f32 (f64 when the run is f64) */
  uint32_t reserved;
  double init;
} gestalt_optimizer_state;

typedef struct gestalt_optimizer_info {
  uint64_t struct_size;
  int64_t granularity;
  const gestalt_optimizer_state* states;
  uint64_t num_states;
} gestalt_optimizer_info;

/* Handles of one update. For ELEMENT everything is a flat vector of one length. */
typedef struct gestalt_optimizer_step {
  uint64_t struct_size;
  gestalt_tensor* param;
  gestalt_tensor* master; /* f32 master weights, NULL when param is its own master */
  gestalt_tensor* grad;   /* sum over the global batch: to be multiplied by clip */
  gestalt_tensor* const* states;
  uint64_t num_states;
  gestalt_tensor* segments;      /* i64 [segments, 2]: offset and length of each parameter in the vector */
  gestalt_tensor* segment_hyper; /* f32 [segments, 2]: weight decay, learning-rate scale */
  gestalt_tensor* scalars;       /* step_scalars */
  gestalt_tensor* clip;          /* f32 []: clip factor times 1 / tokens; negative: skip this update (not finite) */
} gestalt_optimizer_step;

typedef struct gestalt_optimizer_1 {
  uint64_t struct_size;
  gestalt_status* (*describe)(void* self, gestalt_optimizer_info* out) GESTALT_NOEXCEPT;
  gestalt_status* (*emit_step)(void* self, gestalt_build* b, const gestalt_optimizer_step* step) GESTALT_NOEXCEPT;
} gestalt_optimizer_1;
