// Compiled with AVX-512 F, VL, DQ and BW.
#define GESTALT_ISA avx512
#define GESTALT_VECTOR_BYTES 64
#define GESTALT_TILE_ROWS 14
#define GESTALT_TILE_VECTORS 2
#include "plugins/kernels_cpu/loops_inl.h"
