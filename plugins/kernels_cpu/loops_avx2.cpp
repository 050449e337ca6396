// Compiled with -mavx2 -mfma.
#define GESTALT_ISA avx2
#define GESTALT_VECTOR_BYTES 32
#define GESTALT_TILE_ROWS 6
#define GESTALT_TILE_VECTORS 2
#include "plugins/kernels_cpu/loops_inl.h"
