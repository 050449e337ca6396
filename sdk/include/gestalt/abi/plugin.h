/* Gestalt plugin ABI, version 1: ops, kernels, components and the one exported function.
 *
 * Two planes. Leaf plane (kernels): borrowed views, a stream and a workspace; nothing is allocated, nothing owned.
 * Composition plane (ops' rules, modules, optimizers): opaque tensor handles and calls of ops by name, only while a
 * program is recorded (build.h). */
#pragma once

#include "gestalt/abi/base.h"

typedef struct gestalt_build gestalt_build;   /* a recording context, see build.h */
typedef struct gestalt_tensor gestalt_tensor; /* a symbolic tensor: valid until the recording call returns */

/* Arithmetic on dimensions. A non-negative dimension is a number; a negative one is the handle of a named dimension or
 * of an expression over named dimensions. Equal expressions have equal handles. */
typedef struct gestalt_dims {
  uint64_t struct_size;
  void* self;
  int64_t (*mul)(void* self, int64_t a, int64_t b) GESTALT_NOEXCEPT; /* [setup] */
  int64_t (*add)(void* self, int64_t a, int64_t b) GESTALT_NOEXCEPT; /* [setup] */
  /* [setup] a / b where b divides a as an expression; 0 when it does not. */
  int64_t (*div)(void* self, int64_t a, int64_t b) GESTALT_NOEXCEPT;
  int64_t (*max)(void* self, int64_t a) GESTALT_NOEXCEPT; /* [setup] the largest value that `a` takes */
} gestalt_dims;

/* What must hold of a kernel in this program (gestalt_plan.require). */
#define GESTALT_REQUIRE_DETERMINISTIC 1u
#define GESTALT_REQUIRE_BATCH_INVARIANT 2u
#define GESTALT_REQUIRE_CAPTURE 4u

/* The cold description of one op instance. View data pointers are NULL. In `infer` shapes may hold dimension handles;
 * in `prepare` a named dimension has its maximum. An absent optional input is a NULL pointer in `in`. */
typedef struct gestalt_plan {
  uint64_t struct_size;
  gestalt_str op;   /* "core.rms_norm" */
  gestalt_str path; /* module path, for messages: "model.layers.3.attention" */
  const gestalt_view* const* in;
  uint64_t num_in;
  gestalt_view* const* out; /* infer writes dtype, ndim and shape (room for GESTALT_MAX_NDIM); read-only in prepare */
  uint64_t num_out;
  const gestalt_attr* attrs; /* every attribute of the schema, defaults filled in, sorted by name */
  uint64_t num_attrs;
  int32_t device_type, device_id;
  uint64_t require;         /* GESTALT_REQUIRE_ bits */
  uint64_t accumulate;      /* bit i: run may be asked to add into out[i] */
  int64_t sm_budget;        /* multiprocessors the kernel may fill; 0: all */
  const void* group;        /* collectives: the group, see comm.h; else NULL */
  const gestalt_dims* dims; /* infer only; NULL in prepare */
  uint64_t workspace_size, workspace_align; /* written by prepare; 0, 0 at entry */
  void* state;                              /* written by prepare: handed to run and destroy */
} gestalt_plan;

/* One execution. The arrays have the plan's counts. */
typedef struct gestalt_call {
  uint64_t struct_size;
  const gestalt_view* const* in;
  const gestalt_view* const* out;
  uint64_t accumulate; /* bit i: add into out[i] instead of writing it */
  void* stream;        /* never the default stream on CUDA; unused by CPU kernels */
  void* workspace;     /* workspace_size bytes, contents undefined; NULL if 0 */
  const gestalt_host* host;
} gestalt_call;

/* Flags of ops and kernels are split: a reader may ignore unknown bits of the low 32 and must refuse unknown bits of
 * the high 32 (UNSUPPORTED). */
#define GESTALT_KERNEL_CAPTURABLE 1u    /* run may be recorded into a device graph */
#define GESTALT_KERNEL_DETERMINISTIC 2u /* the same inputs give the same bits */
#define GESTALT_KERNEL_STRIDED 4u       /* takes any strides, 0 included; else the host makes inputs contiguous */
#define GESTALT_KERNEL_ACCUMULATES 8u   /* honours gestalt_call.accumulate; else the host adds */
#define GESTALT_KERNEL_ANY_SHAPE 16u    /* one prepare serves every size up to the plan's */

/* An implementation of one op for one device by one backend. */
typedef struct gestalt_kernel {
  uint64_t struct_size;
  gestalt_str op, device, backend; /* "core.rms_norm", "cpu", "acme.cpu" */
  uint64_t flags;
  /* [setup] Decides, plans, or refuses with UNSUPPORTED and the reason. Any other status stops the run. */
  gestalt_status* (*prepare)(const gestalt_host* host, gestalt_plan* plan) GESTALT_NOEXCEPT;
  /* [run] Enqueues work on call->stream, nothing else: no allocation, no synchronisation, no read of device data. */
  gestalt_status* (*run)(void* state, const gestalt_call* call) GESTALT_NOEXCEPT;
  /* [setup] */
  void (*destroy)(void* state) GESTALT_NOEXCEPT;
} gestalt_kernel;

/* Argument of vjp and decompose: handles, never data. */
typedef struct gestalt_compose_call {
  uint64_t struct_size;
  gestalt_build* build;
  gestalt_tensor* const* in; /* NULL entries: absent optional inputs */
  uint64_t num_in;
  gestalt_tensor* const* out;      /* vjp: the op's outputs; decompose: NULL */
  gestalt_tensor* const* grad_out; /* vjp: NULL entries where no gradient flows; decompose: NULL */
  uint64_t num_out;
  uint64_t needs;          /* vjp: bit i: the gradient of in[i] is wanted */
  gestalt_tensor** result; /* vjp: num_in gradients, NULL at entry and where not wanted; decompose: num_out outputs */
  const gestalt_attr* attrs;
  uint64_t num_attrs;
  const gestalt_host* host;
} gestalt_compose_call;

/* Op flags. */
#define GESTALT_OP_PURE 1u      /* no effect but its outputs: may be dropped, repeated, moved */
#define GESTALT_OP_MUTATES 2u   /* writes inputs marked !mut; refused where gradients flow */
#define GESTALT_OP_RANDOM 4u    /* takes keys and the step seed as inputs */
#define GESTALT_OP_HOST_READ 8u /* the host waits for a result: cuts capture */

/* An op: "acme.rope_2d(x, pos, w?, *, base: f64 = 1e4, half: bool = true) -> (y, aux!saved)".
 * Inputs: `name`, `name?` optional, `name!mut` written by the op, `name...` (last only) any number.
 * Attributes after `*`: `name: type [= default]`, types i64 f64 str bool, each with an optional `[]`.
 * Output marks: !inplace(x) may overlay a dead x; !acc(f32) may be written or accumulated in f32 into a gradient
 * buffer; !saved kept for the backward; !nograd; !opaque only the same backend can read it. */
typedef struct gestalt_op {
  uint64_t struct_size;
  gestalt_str schema;
  uint64_t flags;
  /* [setup] Shapes and dtypes of the outputs, or a status that names the wrong input. */
  gestalt_status* (*infer)(const gestalt_host* host, gestalt_plan* plan) GESTALT_NOEXCEPT;
  /* [setup] Gradient by ops. NULL: the gradient of the decomposition; both NULL: asking for one is an error. */
  gestalt_status* (*vjp)(void* self, const gestalt_compose_call* call) GESTALT_NOEXCEPT;
  /* [setup] Meaning by other ops. NULL: a kernel is needed. */
  gestalt_status* (*decompose)(void* self, const gestalt_compose_call* call) GESTALT_NOEXCEPT;
  void* self;
} gestalt_op;

/* One configuration key of a component. The manifest repeats it, so that a run is checked before anything loads.
 * type: "i64" "f64" "str" "bool" "file" (a str naming an existing file), each with an optional "[]", or "table" (the
 * rest of the path goes to whoever it names, unread). default_value and min/max are TOML literals, empty for none. */
#define GESTALT_KEY_REQUIRED 1u
typedef struct gestalt_config_key {
  gestalt_str name, type, default_value, min, max;
  gestalt_str choices; /* valid strings separated by '|'; empty: any */
  gestalt_str when;    /* "key=value": the key has an effect only then; setting it otherwise is an error */
  gestalt_str doc;     /* one line, with the unit */
  uint64_t flags;
} gestalt_config_key;

/* Everything that is neither op nor kernel: a tokenizer, a device, a model. */
typedef struct gestalt_component {
  uint64_t struct_size;
  gestalt_str kind, name; /* "tokenizer/1", "gestalt.byte" */
  const gestalt_config_key* keys;
  uint64_t num_keys;
  /* [setup] config: checked against keys, defaults filled in, sorted by name. */
  gestalt_status* (*create)(const gestalt_host* host, const gestalt_attr* config, uint64_t num, void** self) GESTALT_NOEXCEPT;
  void (*destroy)(void* self) GESTALT_NOEXCEPT; /* [setup] */
  const void* table; /* gestalt_tokenizer_1 and so on; starts with struct_size */
} gestalt_component;

/* The constant descriptor of a plugin. */
typedef struct gestalt_plugin {
  uint64_t struct_size;
  uint32_t abi_major, abi_minor, min_host_minor, reserved;
  gestalt_str id, version, build; /* "acme.kernels", "1.4.0", compiler and flags */
  const gestalt_op* const* ops;
  uint64_t num_ops;
  const gestalt_kernel* const* kernels;
  uint64_t num_kernels;
  const gestalt_component* const* components;
  uint64_t num_components;
  void (*shutdown)(void) GESTALT_NOEXCEPT; /* [setup] before main returns, in reverse load order; may be NULL */
} gestalt_plugin;

/* [setup] The only exported symbol. The descriptor lives as long as the process. */
typedef gestalt_status* (*gestalt_plugin_main_v1_fn)(const gestalt_host* host, const gestalt_plugin** out) GESTALT_NOEXCEPT;
#define GESTALT_PLUGIN_MAIN_V1 "gestalt_plugin_main_v1"
