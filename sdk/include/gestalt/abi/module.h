/* Gestalt plugin ABI, version 1: component kind "module/1": layers and models.
 *
 * create only keeps the configuration. declare runs once per instance and says what the module owns; emit runs once per
 * (phase, signature) and records ops. Both are deterministic functions of the configuration. All [setup]. */
#pragma once

#include "gestalt/abi/build.h"

typedef struct gestalt_declare gestalt_declare;

/* How a parameter starts. The value of an element depends on (seed, name, global element index) only. */
#define GESTALT_INIT_ZEROS 0
#define GESTALT_INIT_ONES 1
#define GESTALT_INIT_NORMAL 2   /* mean a, standard deviation b */
#define GESTALT_INIT_UNIFORM 3  /* in [a, b) */
#define GESTALT_INIT_CONSTANT 4 /* a */

/* A parameter or buffer. Fused weights are declared by parts along dimension 0: shape[0] is the sum of the parts and
 * each part is sharded by itself. The logical (checkpoint) tensor is the concatenation of the whole parts. */
typedef struct gestalt_param_desc {
  uint64_t struct_size;
  gestalt_str name; /* unique in the module: "weight" */
  const int64_t* shape;
  int64_t ndim;
  const int64_t* parts; /* sizes along dimension 0; NULL: one part */
  const gestalt_str* part_names;
  uint64_t num_parts;
  int64_t init; /* GESTALT_INIT_ */
  double init_a, init_b;
  /* Placement: the dimension that is split and the mesh axis it is split over; shard_dim -1: replicated. Each part (or
   * the dimension) is cut in multiples of shard_unit elements. */
  int64_t shard_dim;
  gestalt_str shard_axis; /* "tp", "ep", ...; empty: replicated */
  int64_t shard_unit;
  gestalt_str group; /* optimizer group; empty: "decay" for ndim >= 2, else "no_decay" */
  uint32_t dtype;    /* 0: the run's compute type */
  uint32_t reserved;
} gestalt_param_desc;

/* What generation keeps, per token or per sequence. shape excludes the token or sequence dimension. The module only
 * declares; who generates allocates, pages, shares and moves it (see gestalt_build_api.state). A module that looks at
 * other tokens of a sequence and declares none makes the model run on whole sequences instead. */
#define GESTALT_STATE_PER_TOKEN 0
#define GESTALT_STATE_PER_SEQUENCE 1
typedef struct gestalt_state_desc {
  uint64_t struct_size;
  gestalt_str name;
  int64_t scope; /* GESTALT_STATE_ */
  const int64_t* shape;
  int64_t ndim;
  int64_t shard_dim;
  gestalt_str shard_axis;
  uint32_t dtype; /* 0: the run's compute type */
  uint32_t reserved;
} gestalt_state_desc;

typedef struct gestalt_declare_api {
  uint64_t struct_size;
  /* A child in a slot ("norm"), with a name of its own in paths ("attention_norm"; empty: the slot's). TOML may replace
   * default_component and override keys by slot or path ([model.slots]). Of `config`, the keys that the child's schema
   * knows are passed on, the others ignored. */
  gestalt_status* (*child)(gestalt_declare* d, gestalt_str slot, gestalt_str name, gestalt_str default_component,
                           const gestalt_attr* config, uint64_t num_config, uint64_t* id) GESTALT_NOEXCEPT;
  gestalt_status* (*param)(gestalt_declare* d, const gestalt_param_desc* desc, uint64_t* id) GESTALT_NOEXCEPT;
  gestalt_status* (*buffer)(gestalt_declare* d, const gestalt_param_desc* desc, uint64_t* id) GESTALT_NOEXCEPT;
  gestalt_status* (*state)(gestalt_declare* d, const gestalt_state_desc* desc, uint64_t* id) GESTALT_NOEXCEPT;
  /* The parameter at `path` relative to this module ("embedding.weight", a descendant's) becomes this module's
   * parameter too: one tensor, one gradient, stored once under the first name. */
  gestalt_status* (*tie)(gestalt_declare* d, gestalt_str path, uint64_t* id) GESTALT_NOEXCEPT;
  /* A pipeline stage may begin before the child `id`. */
  gestalt_status* (*boundary)(gestalt_declare* d, uint64_t child) GESTALT_NOEXCEPT;
  /* Size of a mesh axis and this rank's place on it; size 1 for an unknown axis. */
  void (*axis)(gestalt_declare* d, gestalt_str name, int64_t* size, int64_t* index) GESTALT_NOEXCEPT;
  uint32_t (*dtype)(gestalt_declare* d) GESTALT_NOEXCEPT; /* the run's compute type */
  void (*path)(gestalt_declare* d, gestalt_str* out) GESTALT_NOEXCEPT; /* this module's path; borrowed during declare */
} gestalt_declare_api;

struct gestalt_declare {
  const gestalt_declare_api* api;
};

typedef struct gestalt_module_1 {
  uint64_t struct_size;
  gestalt_status* (*declare)(void* self, gestalt_declare* d) GESTALT_NOEXCEPT;
  /* Writes at most *num_out handles and their number. */
  gestalt_status* (*emit)(void* self, gestalt_build* b, gestalt_tensor* const* in, uint64_t num_in,
                          gestalt_tensor** out, uint64_t* num_out) GESTALT_NOEXCEPT;
} gestalt_module_1;
