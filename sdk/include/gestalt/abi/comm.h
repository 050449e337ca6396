/* Gestalt plugin ABI, version 1: component kind "comm/1": groups of ranks and collectives.
 * Calls on one group are made in the same order by all its ranks. Views are contiguous. */
#pragma once

#include "gestalt/abi/plugin.h"

#define GESTALT_REDUCE_SUM 0
#define GESTALT_REDUCE_MAX 1
#define GESTALT_REDUCE_MIN 2

typedef struct gestalt_comm_1 {
  uint64_t struct_size;
  /* [setup] This process's rank and the number of ranks. */
  gestalt_status* (*world)(void* self, int64_t* rank, int64_t* size) GESTALT_NOEXCEPT;
  /* [setup] Called by every rank of the world at the same time, each with the group that it is in, in the group's order:
   * lists that are given at one time are equal or have no rank in common. An empty list: in none, *group is NULL. */
  gestalt_status* (*group_open)(void* self, const int64_t* ranks, uint64_t num, void** group) GESTALT_NOEXCEPT;
  void (*group_close)(void* self, void* group) GESTALT_NOEXCEPT;
  /* [run] All of these only enqueue on `stream`. in and out may be the same view for all_reduce and broadcast. */
  gestalt_status* (*all_reduce)(void* self, void* group, const gestalt_view* in, const gestalt_view* out, int32_t op,
                                void* stream) GESTALT_NOEXCEPT;
  gestalt_status* (*all_gather)(void* self, void* group, const gestalt_view* in, const gestalt_view* out,
                                void* stream) GESTALT_NOEXCEPT;
  gestalt_status* (*reduce_scatter)(void* self, void* group, const gestalt_view* in, const gestalt_view* out, int32_t op,
                                    void* stream) GESTALT_NOEXCEPT;
  /* counts: elements to and from each rank of the group. */
  gestalt_status* (*all_to_all)(void* self, void* group, const gestalt_view* in, const int64_t* send_counts,
                                const gestalt_view* out, const int64_t* recv_counts, void* stream) GESTALT_NOEXCEPT;
  gestalt_status* (*broadcast)(void* self, void* group, const gestalt_view* in, const gestalt_view* out, int64_t root,
                               void* stream) GESTALT_NOEXCEPT;
  gestalt_status* (*send)(void* self, void* group, const gestalt_view* in, int64_t to, void* stream) GESTALT_NOEXCEPT;
  gestalt_status* (*recv)(void* self, void* group, const gestalt_view* out, int64_t from, void* stream) GESTALT_NOEXCEPT;
  gestalt_status* (*batch)(void* self, int32_t begin) GESTALT_NOEXCEPT; /* [run] 1 opens, 0 closes a set of sends and receives */
  gestalt_status* (*barrier)(void* self, void* group) GESTALT_NOEXCEPT; /* [run] the host waits */
  gestalt_status* (*progress)(void* self) GESTALT_NOEXCEPT;             /* [any] reports asynchronous errors */
  void (*abort)(void* self) GESTALT_NOEXCEPT;                          /* [any] every pending call returns with an error */
} gestalt_comm_1;

/* "gestalt.copy/1": copies on any open device, for a comm that has no engine for that device. */
typedef struct gestalt_copy_1 {
  uint64_t struct_size;
  void* self;
  /* [run] From `in` to `out`, contiguous views of one device with the same number of bytes, in order of `stream`. */
  gestalt_status* (*copy)(void* self, const gestalt_view* in, const gestalt_view* out, void* stream) GESTALT_NOEXCEPT;
  /* [run] Between a contiguous view and host memory of the same size. They come after the work before on `stream`, and
   * the bytes are there when the call returns. */
  gestalt_status* (*to_host)(void* self, const gestalt_view* in, void* host, void* stream) GESTALT_NOEXCEPT;
  gestalt_status* (*from_host)(void* self, const void* host, const gestalt_view* out, void* stream) GESTALT_NOEXCEPT;
} gestalt_copy_1;
