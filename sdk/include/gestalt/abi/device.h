/* Gestalt plugin ABI, version 1: component kind "device/1": memory, copies, streams, events, graph capture.
 * `create` opens device `ordinal` (configuration key) or fails with UNAVAILABLE and the reason. */
#pragma once

#include "gestalt/abi/plugin.h"

typedef struct gestalt_device_info {
  uint64_t struct_size;
  int32_t device_type, device_id;
  gestalt_str name;       /* "cpu", "NVIDIA H200" */
  gestalt_str kernels_of; /* the device whose kernels bind here: "cpu" for cpu and sim */
  uint64_t alignment;     /* of every tensor inside an arena, a power of two */
  uint64_t total_bytes, free_bytes; /* 0: not limited by the device */
  uint64_t host_visible;  /* 1: the host may read and write its memory after sync */
} gestalt_device_info;

#define GESTALT_ALLOC_DEVICE 0
#define GESTALT_ALLOC_PINNED 1 /* host memory that copies fast */

#define GESTALT_COPY_TO_DEVICE 0
#define GESTALT_COPY_TO_HOST 1
#define GESTALT_COPY_ON_DEVICE 2

#define GESTALT_HANDLE_STREAM 0
#define GESTALT_HANDLE_EVENT 1
#define GESTALT_HANDLE_GRAPH 2

typedef struct gestalt_device_1 {
  uint64_t struct_size;
  gestalt_status* (*info)(void* self, gestalt_device_info* out) GESTALT_NOEXCEPT; /* [any] */
  /* [setup] Aligned to info.alignment, contents undefined. OUT_OF_MEMORY names the size. 0 bytes gives NULL. */
  gestalt_status* (*alloc)(void* self, uint64_t bytes, int32_t where, void** out) GESTALT_NOEXCEPT;
  gestalt_status* (*free)(void* self, void* data) GESTALT_NOEXCEPT; /* [setup] waits for work that uses it */
  gestalt_status* (*stream_open)(void* self, void** stream) GESTALT_NOEXCEPT;
  gestalt_status* (*event_open)(void* self, void** event) GESTALT_NOEXCEPT;
  gestalt_status* (*close)(void* self, int32_t kind, void* handle) GESTALT_NOEXCEPT; /* [setup] GESTALT_HANDLE_ */
  /* [run] In stream order. Host memory must stay valid and unchanged until the stream passes the copy. */
  gestalt_status* (*copy)(void* self, void* dst, const void* src, uint64_t bytes, int32_t direction,
                          void* stream) GESTALT_NOEXCEPT;
  gestalt_status* (*fill)(void* self, void* dst, uint8_t byte, uint64_t bytes, void* stream) GESTALT_NOEXCEPT; /* [run] */
  gestalt_status* (*record)(void* self, void* event, void* stream) GESTALT_NOEXCEPT;                          /* [run] */
  gestalt_status* (*wait)(void* self, void* event, void* stream) GESTALT_NOEXCEPT; /* [run] the stream waits, not the host */
  /* [run] The host waits for a stream; NULL: for all. Reports errors of the work before. */
  gestalt_status* (*sync)(void* self, void* stream) GESTALT_NOEXCEPT;
  /* [run] NULL where kernels enqueue by themselves (cuda) or run inline (cpu). Else the host launches every CPU kernel
   * through it: run(state, call) is executed in stream order; call and its views stay valid until sync. */
  gestalt_status* (*launch)(void* self, void* stream, gestalt_status* (*run)(void* state, const gestalt_call* call),
                            void* state, const gestalt_call* call, uint64_t num_in, uint64_t num_out,
                            uint64_t workspace_size) GESTALT_NOEXCEPT;
  /* [run] Work between begin and end is recorded, not run; streams that join by events are recorded too. NULL: the
   * device cannot capture. */
  gestalt_status* (*capture_begin)(void* self, void* stream) GESTALT_NOEXCEPT;
  gestalt_status* (*capture_end)(void* self, void* stream, void** graph) GESTALT_NOEXCEPT;
  gestalt_status* (*replay)(void* self, void* graph, void* stream) GESTALT_NOEXCEPT;
} gestalt_device_1;
