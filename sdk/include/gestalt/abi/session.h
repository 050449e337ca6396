/* Gestalt plugin ABI, version 1: component kind "task/1", a verb of the launcher, and "gestalt.session/1", what a task
 * does its work with. A task runs on one thread; every function is called on that thread. */
#pragma once

#include "gestalt/abi/checkpoint.h"
#include "gestalt/abi/optimizer.h"
#include "gestalt/abi/tokenizer.h"
#include "gestalt/abi/tracker.h"

typedef struct gestalt_session gestalt_session;

/* Result of one training step or evaluation. */
typedef struct gestalt_step_result {
  uint64_t struct_size;
  int64_t step;      /* number of updates done, this one included */
  double loss;       /* sum of token losses / sum of token weights of the global batch, nats */
  double weight;     /* sum of token weights */
  double grad_norm;  /* before clipping; 0 for an evaluation */
  double lr;
  int64_t skipped;   /* 1: the update was skipped because loss or gradient was not finite */
  int64_t num_tokens;
  double data_seconds, step_seconds;
} gestalt_step_result;

/* A field of a batch in host memory, contiguous. */
typedef struct gestalt_batch_view {
  gestalt_str name; /* "tokens" */
  gestalt_view view;
} gestalt_batch_view;

/* What a run costs. */
typedef struct gestalt_run_info {
  uint64_t struct_size;
  /* Operations of one update on the last global batch: three times those of the forward's matrix products and
   * attention, causal attention counted half, recomputation left out. 0 before the first update. */
  double step_flops;
  uint64_t memory_bytes, memory_peak_bytes; /* device memory now and at most */
  gestalt_str device, dtype;                /* "cpu", "f32"; borrowed */
} gestalt_run_info;

/* One op of a step that was timed. Strings are borrowed until put returns. */
typedef struct gestalt_profile_event {
  uint64_t struct_size;
  gestalt_str op, group, path, region, backend; /* "core.linear", "matrix", "model.layers.0.mlp", "forward" */
  int64_t begin_ns, duration_ns;                /* from any fixed point */
  double flops, bytes;                          /* flops 0: not counted for this op */
} gestalt_profile_event;
typedef struct gestalt_profile_sink {
  uint64_t struct_size;
  void* self;
  void (*put)(void* self, const gestalt_profile_event* event) GESTALT_NOEXCEPT;
} gestalt_profile_sink;

/* Sizes of generation on state that the modules declared. */
typedef struct gestalt_generation {
  uint64_t struct_size;
  int64_t block_tokens, num_blocks;     /* tokens of a block of state, blocks in all */
  int64_t max_tokens, max_sequences;    /* of one pass */
} gestalt_generation;

/* How the next token of a sequence is chosen; see core.sample. */
typedef struct gestalt_sampling {
  float temperature, top_p, min_p; /* temperature 0: the largest logit */
  int32_t top_k;                   /* 0: all */
  uint64_t seed, position;         /* the draw is a function of both; position counts what was drawn before */
} gestalt_sampling;

/* New tokens of some sequences, one sequence after the other. Their states of earlier passes are where `blocks` says;
 * state of the new tokens is put there. */
typedef struct gestalt_generation_pass {
  uint64_t struct_size;
  const int32_t* tokens; /* [num_tokens] */
  uint64_t num_tokens, num_sequences;
  const int32_t* starts;  /* [num_sequences + 1]: where the tokens of each begin; the last is num_tokens */
  const int32_t* lengths; /* [num_sequences] tokens of each after this pass */
  const int32_t* blocks;  /* [num_sequences, blocks_per_sequence]; entries beyond a sequence's length are not read */
  uint64_t blocks_per_sequence;
  const int32_t* slots; /* [num_sequences] of state per sequence: below max_sequences, of one sequence as long as it lives */
  const gestalt_sampling* sampling; /* [num_sequences] */
  int32_t* ids;                     /* out [num_sequences]: the next token */
  float* logprobs;                  /* out [num_sequences]: its log probability; may be NULL */
  float* logits;                    /* out [num_sequences, vocabulary] of the last tokens; may be NULL */
} gestalt_generation_pass;

/* Which tensors read_tensor means. */
#define GESTALT_TENSOR_WEIGHT 0
#define GESTALT_TENSOR_GRADIENT 1  /* of the last run_batch with gradients: of the loss sum, before any scaling */
#define GESTALT_TENSOR_REFERENCE 2 /* of what open_reference opened */

/* run_batch flags. */
#define GESTALT_BATCH_GRADIENTS 1u
#define GESTALT_BATCH_ACCUMULATE 2u /* gradients and sums add to those of the last run_batch */

typedef struct gestalt_session_api {
  uint64_t struct_size;
  /* The final value of a configuration key ("train.steps"); NOT_FOUND when neither set nor defaulted. Borrowed. */
  gestalt_status* (*config)(gestalt_session* s, gestalt_str key, gestalt_attr* out) GESTALT_NOEXCEPT;
  /* Builds the model of [model] and gives it values: from `load_from` (a checkpoint folder) or, if empty, from the
   * checkpoint that the command line names, else by initialisation. Programs are recorded and bound on first use. */
  gestalt_status* (*open_model)(gestalt_session* s, gestalt_str load_from) GESTALT_NOEXCEPT;
  gestalt_status* (*open_data)(gestalt_session* s) GESTALT_NOEXCEPT;      /* [tokenizer] and [data] */
  gestalt_status* (*open_optimizer)(gestalt_session* s) GESTALT_NOEXCEPT; /* after open_model and open_data */
  int64_t (*num_parameters)(gestalt_session* s) GESTALT_NOEXCEPT;        /* logical, tied once */
  int64_t (*num_samples)(gestalt_session* s, gestalt_str split) GESTALT_NOEXCEPT; /* 0: no such split, -1: unlimited */
  /* One update on the next global batch. */
  gestalt_status* (*train_step)(gestalt_session* s, gestalt_step_result* out) GESTALT_NOEXCEPT;
  /* Loss over samples [first, first + num) of a split; num -1: all. */
  gestalt_status* (*evaluate)(gestalt_session* s, gestalt_str split, int64_t first, int64_t num,
                              gestalt_step_result* out) GESTALT_NOEXCEPT;
  /* Bytes of text that the split's trained tokens stand for, for bits per byte; -1: unknown. */
  int64_t (*bytes_of_text)(gestalt_session* s, gestalt_str split) GESTALT_NOEXCEPT;
  /* Logits f32 [num_ids, vocabulary] of one sequence, row major, into `logits` (room for `room` floats); *vocab is
   * written first, so room 0 asks for it. */
  gestalt_status* (*logits)(gestalt_session* s, const int32_t* ids, uint64_t num_ids, float* logits, uint64_t room,
                            int64_t* vocab) GESTALT_NOEXCEPT;
  gestalt_status* (*tokenizer)(gestalt_session* s, const gestalt_tokenizer_1** table, void** self) GESTALT_NOEXCEPT;
  /* Takes a snapshot of the state after the last update; it is written and committed under the run's folder while the
   * training goes on, and the host prints "saved PATH state DIGEST" once it is. A save that fails is logged; only after
   * [checkpoint] max_failed_saves in a row this or train_step returns IO_ERROR. Waits for the save before. *path, where
   * the checkpoint will be, is borrowed until the next. */
  gestalt_status* (*save)(gestalt_session* s, gestalt_str* path) GESTALT_NOEXCEPT;
  gestalt_status* (*metrics)(gestalt_session* s, int64_t step, const gestalt_metric* m, uint64_t num) GESTALT_NOEXCEPT;
  /* Text for the user on standard output; with --json a task prints exactly one JSON object. */
  void (*print)(gestalt_session* s, gestalt_str text) GESTALT_NOEXCEPT;
  /* Arguments of the command line that belong to the task, as given: "--prompt", "In the beginning". */
  uint64_t (*arguments)(gestalt_session* s, const gestalt_str** out) GESTALT_NOEXCEPT;
  int32_t (*stop_requested)(gestalt_session* s) GESTALT_NOEXCEPT; /* 1: SIGTERM or SIGINT arrived; 2: SIGUSR1: save */
  /* The number of updates of the run, where the configuration leaves it open (train.minutes): the schedule decays until
   * then. Once, during warm-up; an error when train.steps is set. */
  gestalt_status* (*set_steps)(gestalt_session* s, int64_t steps) GESTALT_NOEXCEPT;
  int64_t (*steps_done)(gestalt_session* s) GESTALT_NOEXCEPT; /* updates done, those before a resume included */
  void (*output_folder)(gestalt_session* s, gestalt_str* out) GESTALT_NOEXCEPT; /* [run] output, exists */

  /* For comparisons with other programs; after open_model. */
  /* Every parameter and buffer: name, shape, parts, dtype; view.data is NULL. */
  gestalt_status* (*parameters)(gestalt_session* s, const gestalt_shard_sink* sink) GESTALT_NOEXCEPT;
  /* A second set of tensors under the names of the model that the command line names; see gestalt_format_1.open. */
  gestalt_status* (*open_reference)(gestalt_session* s, gestalt_str tensors_file, gestalt_str prefix) GESTALT_NOEXCEPT;
  /* A whole logical tensor into a contiguous f32 or f64 view of its shape. */
  gestalt_status* (*read_tensor)(gestalt_session* s, int32_t kind, gestalt_str name, gestalt_view* out) GESTALT_NOEXCEPT;
  /* Forward (and backward) over a batch that is not from a data set. fields: tokens, labels, positions i32 [t], weights
   * f32 [t], seq_starts i32 [s+1], keys i32 [t, 2]. Without gradients the model runs as in an evaluation. */
  gestalt_status* (*run_batch)(gestalt_session* s, const gestalt_batch_view* fields, uint64_t num, uint64_t flags,
                               double* loss_sum, double* weight) GESTALT_NOEXCEPT;
  /* Clips, and updates by [optimizer] with the gradients of run_batch. lr below 0: the schedule's. */
  gestalt_status* (*update)(gestalt_session* s, double lr, gestalt_step_result* out) GESTALT_NOEXCEPT;
  /* Returns when no save is in flight; IO_ERROR when the last one failed. */
  gestalt_status* (*wait_saved)(gestalt_session* s) GESTALT_NOEXCEPT;
  /* Logits f32 [t, vocabulary] of a batch as run_batch takes it; labels and weights may be missing. `room` and *vocab as
   * for logits. */
  gestalt_status* (*batch_logits)(gestalt_session* s, const gestalt_batch_view* fields, uint64_t num, float* logits,
                                  uint64_t room, int64_t* vocab) GESTALT_NOEXCEPT;

  gestalt_status* (*info)(gestalt_session* s, gestalt_run_info* out) GESTALT_NOEXCEPT; /* after open_model */
  /* A text for the trackers, see gestalt_tracker_1. */
  gestalt_status* (*text)(gestalt_session* s, int64_t step, gestalt_str name, gestalt_str text) GESTALT_NOEXCEPT;
  /* train_step node by node, waiting after each, so that times belong to one op. */
  gestalt_status* (*profiled_step)(gestalt_session* s, const gestalt_profile_sink* sink,
                                   gestalt_step_result* out) GESTALT_NOEXCEPT;
  /* Runs the batches of the last update again, node by node, and returns VALIDATION with the first parameter or result
   * that is not finite, its op and its module path. NULL: all were finite this time. */
  gestalt_status* (*find_not_finite)(gestalt_session* s) GESTALT_NOEXCEPT;

  /* Allocates state and records the passes; opened again, the old state is gone. UNSUPPORTED when a module keeps no
   * state of the tokens that it looks at: then `logits` is left. *vocab: columns of logits. */
  gestalt_status* (*open_generation)(gestalt_session* s, const gestalt_generation* sizes,
                                     int64_t* vocab) GESTALT_NOEXCEPT;
  gestalt_status* (*generate)(gestalt_session* s, const gestalt_generation_pass* pass) GESTALT_NOEXCEPT;
  /* A block's state of every module into another block, for sequences that part ways. */
  gestalt_status* (*copy_block)(gestalt_session* s, int64_t from, int64_t to) GESTALT_NOEXCEPT;
} gestalt_session_api;

struct gestalt_session {
  const gestalt_session_api* api;
};

/* What a task needs before it runs. */
#define GESTALT_TASK_TAKES_RUN 1u  /* its first argument is CONFIG or MODEL, which the host reads and checks */
#define GESTALT_TASK_USES_DATA 2u  /* it reads the data, optimizer and train sections; else they are not looked at */
/* Its first argument may be a MODEL. Then the host opens it as with TAKES_RUN; anything else is the task's own to read.
 * Either way it stays among the arguments. */
#define GESTALT_TASK_MAY_TAKE_RUN 4u

typedef struct gestalt_task_1 {
  uint64_t struct_size;
  gestalt_str usage; /* "gestalt train CONFIG [...]": one line for --help */
  uint64_t flags;    /* GESTALT_TASK_ */
  /* NULL: done. INTERRUPTED: stopped after a clean save. */
  gestalt_status* (*run)(void* self, gestalt_session* session) GESTALT_NOEXCEPT;
  /* TOML that completes the run file: what it does not say. [plugins] use is added to. */
  gestalt_str defaults;
} gestalt_task_1;
