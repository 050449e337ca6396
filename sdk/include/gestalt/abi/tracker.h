/* Gestalt plugin ABI, version 1: component kind "tracker/1": a sink of metrics. [run] on one thread. */
#pragma once

#include "gestalt/abi/plugin.h"

typedef struct gestalt_metric {
  gestalt_str name;
  double value;
} gestalt_metric;

typedef struct gestalt_tracker_1 {
  uint64_t struct_size;
  /* Begins or resumes a run in a folder that exists; records of steps above `step` are void (-1: a new run). */
  gestalt_status* (*open)(void* self, gestalt_str folder, gestalt_str run_name, int64_t step) GESTALT_NOEXCEPT;
  gestalt_status* (*write)(void* self, int64_t step, const gestalt_metric* metrics, uint64_t num) GESTALT_NOEXCEPT;
  gestalt_status* (*flush)(void* self) GESTALT_NOEXCEPT; /* what was written survives a kill of the process */
  /* A text that belongs to the run ("config", "plugins", "kernels": once, after open) or to a step ("sample"). NULL:
   * the tracker keeps none. */
  gestalt_status* (*text)(void* self, int64_t step, gestalt_str name, gestalt_str text) GESTALT_NOEXCEPT;
} gestalt_tracker_1;
