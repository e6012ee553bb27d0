#define CRFKIT_KERNELS pseudo_kernels_avx2
#define CRFKIT_LANES 4
#include "pseudo_table_kernels.inl"
