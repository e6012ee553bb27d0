#define CRFKIT_SINGLE
#define CRFKIT_SINGLE_KERNELS single_avx512
#define CRFKIT_LANES 16
#define CRFKIT_OUTER_VECTORS 24
#include "single.inl"
