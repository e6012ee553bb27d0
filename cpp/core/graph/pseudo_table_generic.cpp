#define CRFKIT_KERNELS pseudo_kernels_generic
#define CRFKIT_LANES 2
#include "pseudo_table_kernels.inl"
