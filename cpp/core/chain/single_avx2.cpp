#define CRFKIT_SINGLE
#define CRFKIT_SINGLE_KERNELS single_avx2
#define CRFKIT_LANES 8
#define CRFKIT_OUTER_VECTORS 12
#include "single.inl"
