/* Gestalt plugin ABI, version 1: recording programs. Modules, optimizers and the gradient rules of ops call these
 * functions while a program is recorded; nothing here runs inside a step. All functions are [setup]. */
#pragma once

#include "gestalt/abi/plugin.h"

/* Phases of emit. */
#define GESTALT_PHASE_TRAIN 0
#define GESTALT_PHASE_INFER 1
#define GESTALT_PHASE_AFTER_BACKWARD 2
#define GESTALT_PHASE_AFTER_STEP 3
#define GESTALT_PHASE_EVAL 4 /* the losses of train without what only training does: no dropout */

typedef struct gestalt_build_api {
  uint64_t struct_size;
  /* Records one op. `in` may hold NULL for absent optional inputs. *num_out is the room in `out` at entry and the number
   * of outputs at return. View ops (reshape, transpose, slice, ...) record no work. */
  gestalt_status* (*apply)(gestalt_build* b, gestalt_str op, gestalt_tensor* const* in, uint64_t num_in,
                           const gestalt_attr* attrs, uint64_t num_attrs, gestalt_tensor** out,
                           uint64_t* num_out) GESTALT_NOEXCEPT;
  /* dtype, ndim and shape (room for GESTALT_MAX_NDIM; may hold dimension handles) of a handle. */
  gestalt_status* (*describe)(gestalt_build* b, const gestalt_tensor* t, uint32_t* dtype, int32_t* ndim,
                              int64_t* shape) GESTALT_NOEXCEPT;
  const gestalt_dims* (*dims)(gestalt_build* b) GESTALT_NOEXCEPT;
  int32_t (*phase)(gestalt_build* b) GESTALT_NOEXCEPT;
  /* The named tensor of the batch ("tokens", "labels", "weights", "positions", "seq_starts", "keys"), or of the step:
   * "step_scalars" f32 [8] and "step_seed" i32 [4] (see optimizer.h). *out is NULL when `required` is 0 and the batch
   * has no such field; an error otherwise. */
  gestalt_status* (*batch)(gestalt_build* b, gestalt_str name, int32_t required, gestalt_tensor** out) GESTALT_NOEXCEPT;
  /* A parameter, buffer or state of the module that is emitting, by the id that declare returned. */
  gestalt_status* (*param)(gestalt_build* b, uint64_t id, gestalt_tensor** out) GESTALT_NOEXCEPT;
  gestalt_status* (*buffer)(gestalt_build* b, uint64_t id, gestalt_tensor** out) GESTALT_NOEXCEPT;
  /* A state per token is [blocks, tokens of a block, ...], one per sequence [slots, ...]. The batch fields "block_table"
   * i32 [sequences, blocks of a sequence], "lengths" i32 [sequences] (tokens after this pass) and "slots" i32 [sequences]
   * say where each sequence's is. *out is NULL in programs without state: training, and inference on whole sequences. */
  gestalt_status* (*state)(gestalt_build* b, uint64_t id, gestalt_tensor** out) GESTALT_NOEXCEPT;
  /* Emits a child of the module that is emitting. */
  gestalt_status* (*call)(gestalt_build* b, uint64_t child, gestalt_tensor* const* in, uint64_t num_in,
                          gestalt_tensor** out, uint64_t* num_out) GESTALT_NOEXCEPT;
  /* Adds a loss: `sum` is a scalar, the sum of token losses; `weight` the scalar sum of token weights. The step divides
   * by the weight of the global batch. */
  gestalt_status* (*loss)(gestalt_build* b, gestalt_str name, gestalt_tensor* sum, gestalt_tensor* weight) GESTALT_NOEXCEPT;
  /* Reports sum / weight, both scalars, summed over micro-batches and ranks first. */
  gestalt_status* (*metric)(gestalt_build* b, gestalt_str name, gestalt_tensor* sum,
                            gestalt_tensor* weight) GESTALT_NOEXCEPT;
} gestalt_build_api;

/* The first member of the host's recording context. */
struct gestalt_build {
  const gestalt_build_api* api;
};
