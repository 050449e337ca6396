/* Gestalt plugin ABI, version 1: basic types shared by every header of this folder.
 *
 * Rules of form (each checked by a test): C11; fixed-width integers only; no enum, bool, bit-field or size_t in a
 * struct; every struct is a multiple of eight bytes without padding; nothing is returned by value but pointers and
 * integers; a string is a pointer and a length; every array has its count beside it. Structs grow at the end only, and
 * a reader uses a field only if GESTALT_HAS says that the writer's struct reaches it.
 *
 * Thread tags. [setup]: one thread at a time per plugin. [run]: one thread at a time per state, different states in
 * parallel. [any]: any thread, any time.
 *
 * Ownership. Creator frees: status objects by the host, kernel state by the kernel's own destroy, component state by
 * the component's own destroy. Everything else is borrowed until the call returns, unless its comment says longer. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
#define GESTALT_NOEXCEPT noexcept
#define GESTALT_EXTERN_C extern "C"
#else
#define GESTALT_NOEXCEPT
#define GESTALT_EXTERN_C
#endif

#define GESTALT_ABI_MAJOR 1
#define GESTALT_ABI_MINOR 0
#define GESTALT_MAX_NDIM 8

/* True when the struct that `p` points to, as its writer knew it, contains `field`. */
#define GESTALT_HAS(p, field) \
  ((p)->struct_size >= (uint64_t)((const char*)(&(p)->field + 1) - (const char*)(p)))

/* UTF-8, not terminated, borrowed. data may be NULL when size is 0. */
typedef struct gestalt_str {
  const char* data;
  uint64_t size;
} gestalt_str;

/* Made by gestalt_host.status_new, freed by the host. A NULL status is success. */
typedef struct gestalt_status gestalt_status;

/* Status codes. The launcher maps each to an exit code (docs/guide.md). */
#define GESTALT_INVALID_ARGUMENT 1 /* the caller passed something wrong */
#define GESTALT_INTERNAL 2         /* a fault of ours */
#define GESTALT_UNSUPPORTED 3      /* a kernel declines: the host tries the next candidate */
#define GESTALT_NOT_FOUND 4        /* input missing: exit 66 */
#define GESTALT_DATA_ERROR 5       /* input refused: exit 65 */
#define GESTALT_UNAVAILABLE 6      /* backend or device absent, op without kernel: exit 69 */
#define GESTALT_IO_ERROR 7         /* storage failed: exit 74 */
#define GESTALT_CONFIG_ERROR 8     /* configuration, manifest or plugin refused: exit 78 */
#define GESTALT_OUT_OF_MEMORY 9    /* exit 1 with the ledger printed */
#define GESTALT_INTERRUPTED 10     /* stopped after a clean save: exit 75 */
#define GESTALT_VALIDATION 11      /* a result is out of tolerance: exit 17 */
#define GESTALT_USAGE_ERROR 12     /* wrong command line: exit 2 */
#define GESTALT_AMBIGUOUS 13       /* which checkpoint to resume must be said: exit 16 */

/* Log levels. */
#define GESTALT_LOG_DEBUG 0
#define GESTALT_LOG_INFO 1
#define GESTALT_LOG_WARN 2
#define GESTALT_LOG_ERROR 3

/* Element types: DLPack's (code, bits, lanes) packed as code | bits << 8 | lanes << 16. */
#define GESTALT_DTYPE(code, bits) ((uint32_t)(code) | (uint32_t)(bits) << 8 | 1u << 16)
#define GESTALT_I32 GESTALT_DTYPE(0, 32)
#define GESTALT_I64 GESTALT_DTYPE(0, 64)
#define GESTALT_U8 GESTALT_DTYPE(1, 8)
#define GESTALT_F16 GESTALT_DTYPE(2, 16)
#define GESTALT_F32 GESTALT_DTYPE(2, 32)
#define GESTALT_F64 GESTALT_DTYPE(2, 64)
#define GESTALT_BF16 GESTALT_DTYPE(4, 16)
#define GESTALT_BOOL GESTALT_DTYPE(6, 8)

/* Device types: DLPack's numbers; sim is a host device in DLPack's extension range. */
#define GESTALT_DEVICE_CPU 1
#define GESTALT_DEVICE_CUDA 2
#define GESTALT_DEVICE_OPENCL 4
#define GESTALT_DEVICE_SIM 12

/* A borrowed tensor: the layout of DLTensor under a stricter profile. strides (in elements) is never NULL when
 * ndim > 0; byte_offset is always 0; ndim <= GESTALT_MAX_NDIM; data is NULL only for an empty tensor or in a plan; data
 * is aligned to its element. */
typedef struct gestalt_view {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  uint32_t dtype; /* DLDataType as one word: see GESTALT_DTYPE */
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} gestalt_view;

/* Attribute kinds. */
#define GESTALT_ATTR_I64 1
#define GESTALT_ATTR_F64 2
#define GESTALT_ATTR_STR 3
#define GESTALT_ATTR_BOOL 4 /* value.i is 0 or 1 */
#define GESTALT_ATTR_I64_LIST 5
#define GESTALT_ATTR_F64_LIST 6
#define GESTALT_ATTR_STR_LIST 7

/* A list: `data` points to int64_t, double or gestalt_str by the attribute's kind. */
typedef struct gestalt_list {
  const void* data;
  uint64_t size;
} gestalt_list;

/* A named, typed value: an op's attribute, or one configuration key (then `name` is its path, as in "corpora[0].path").
 * Arrays of attributes are sorted by name. */
typedef struct gestalt_attr {
  gestalt_str name;
  uint64_t kind;
  union {
    int64_t i;
    double f;
    gestalt_str s;
    gestalt_list list;
  } value;
} gestalt_attr;

/* What the host gives a plugin. One object per plugin, so that errors and log lines have an owner; it lives as long as
 * the process. */
typedef struct gestalt_host {
  uint64_t struct_size;
  uint32_t abi_major, abi_minor;
  void* self;
  /* [any] Copies `message`. Never NULL: out of memory gives a preallocated status. */
  gestalt_status* (*status_new)(void* self, int32_t code, gestalt_str message) GESTALT_NOEXCEPT;
  /* [any] NULL is allowed. */
  void (*status_free)(void* self, gestalt_status* status) GESTALT_NOEXCEPT;
  /* [any] `message` stays valid until status_free. */
  int32_t (*status_get)(void* self, const gestalt_status* status, gestalt_str* message) GESTALT_NOEXCEPT;
  /* [any] */
  void (*log)(void* self, int32_t level, gestalt_str message) GESTALT_NOEXCEPT;
  /* [any] A table of functions by id ("gestalt.parallel/1"), valid as long as the process; NULL if absent. */
  const void* (*get_interface)(void* self, gestalt_str id) GESTALT_NOEXCEPT;
} gestalt_host;

/* "gestalt.parallel/1": the process's one team of compute threads. CPU kernels use this and never start threads. */
typedef struct gestalt_parallel_1 {
  uint64_t struct_size;
  void* self;
  /* [run] Threads that parallel_for may use, at least 1. */
  int64_t (*num_threads)(void* self) GESTALT_NOEXCEPT;
  /* [run] Calls fn(ctx, begin, end) over a partition of [0, n) into at most num_threads contiguous ranges that depends
   * only on n, grain and num_threads; a range holds at least `grain` items unless n is smaller. Returns when all are
   * done. fn must not call back into this interface. Never allocates once warm. */
  void (*parallel_for)(void* self, int64_t n, int64_t grain, void (*fn)(void* ctx, int64_t begin, int64_t end),
                       void* ctx) GESTALT_NOEXCEPT;
} gestalt_parallel_1;
