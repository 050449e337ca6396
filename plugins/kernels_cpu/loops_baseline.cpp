// Plain x86-64 (SSE2), or any other processor.
#define GESTALT_ISA baseline
#define GESTALT_VECTOR_BYTES 16
#define GESTALT_TILE_ROWS 4
#define GESTALT_TILE_VECTORS 2
#include "plugins/kernels_cpu/loops_inl.h"
