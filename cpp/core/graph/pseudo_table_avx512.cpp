#define CRFKIT_KERNELS pseudo_kernels_avx512
#define CRFKIT_LANES 8
#include "pseudo_table_kernels.inl"
